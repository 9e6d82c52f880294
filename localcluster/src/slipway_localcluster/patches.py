"""JSON merge patch (RFC 7386), JSON patch (RFC 6902), strategic merge patch."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from slipway_localcluster.errors import BadRequest, Invalid, JsonObject
from slipway_localcluster.topology import Topology

_DIRECTIVE = "$patch"
_DELETE_VALUES = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"


def merge_patch(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def json_patch(target: JsonObject, operations: Any) -> Any:
    if not isinstance(operations, list):
        raise BadRequest("a JSON patch is a list of operations")
    document: Any = copy.deepcopy(target)
    for operation in operations:
        if not isinstance(operation, dict) or operation.get("op") not in _OPERATIONS:
            raise BadRequest(f"unknown JSON patch operation: {operation}")
        try:
            document = _OPERATIONS[operation["op"]](document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            where = operation.get("path")
            raise Invalid(
                f"JSON patch {operation['op']} {where}: the path does not exist"
            ) from error
    return document


def _split(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise ValueError(pointer)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _read(document: Any, pointer: str) -> Any:
    for part in _split(pointer):
        document = document[_index(document, part)]
    return document


def _index(parent: Any, part: str) -> Any:
    if not isinstance(parent, list):
        return part
    if not part.isdigit():
        raise ValueError(part)
    return int(part)


def _add(document: Any, operation: Mapping[str, Any]) -> Any:
    return _insert(document, operation["path"], copy.deepcopy(operation["value"]))


def _insert(document: Any, pointer: str, value: Any) -> Any:
    parts = _split(pointer)
    if not parts:
        return value
    parent = document
    for part in parts[:-1]:
        parent = parent[_index(parent, part)]
    if isinstance(parent, list):
        position = len(parent) if parts[-1] == "-" else _index(parent, parts[-1])
        if position > len(parent):
            raise IndexError(pointer)
        parent.insert(position, value)
    else:
        parent[parts[-1]] = value
    return document


def _remove(document: Any, operation: Mapping[str, Any]) -> Any:
    parts = _split(operation["path"])
    parent = document
    for part in parts[:-1]:
        parent = parent[_index(parent, part)]
    del parent[_index(parent, parts[-1])]
    return document


def _replace(document: Any, operation: Mapping[str, Any]) -> Any:
    if not _split(operation["path"]):
        return copy.deepcopy(operation["value"])
    _read(document, operation["path"])
    return _add(_remove(document, operation), operation)


def _move(document: Any, operation: Mapping[str, Any]) -> Any:
    value = _read(document, operation["from"])
    return _insert(_remove(document, {"path": operation["from"]}), operation["path"], value)


def _copy(document: Any, operation: Mapping[str, Any]) -> Any:
    value = copy.deepcopy(_read(document, operation["from"]))
    return _insert(document, operation["path"], value)


def _test(document: Any, operation: Mapping[str, Any]) -> Any:
    if _read(document, operation["path"]) != operation["value"]:
        raise Invalid(f"JSON patch test {operation['path']}: the value differs")
    return document


_OPERATIONS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def strategic_merge_patch(target: JsonObject, patch: JsonObject, topology: Topology) -> JsonObject:
    """Apply a strategic merge patch: objects merge, lists merge by the key of their type, other lists are replaced."""
    return _merge_objects(target, patch, (), topology)


def _merge_objects(
    target: Any, patch: JsonObject, path: tuple[str, ...], topology: Topology
) -> JsonObject:
    directive = patch.get(_DIRECTIVE)
    patch = {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "replace":
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    retained = patch.pop(_RETAIN, None)
    if retained is not None:
        merged = {name: value for name, value in merged.items() if name in retained}
    for name, value in patch.items():
        _merge_field(merged, name, value, path, topology)
    return merged


def _merge_field(
    merged: JsonObject, name: str, value: Any, path: tuple[str, ...], topology: Topology
) -> None:
    if name.startswith(_ORDER):
        return
    if name.startswith(_DELETE_VALUES):
        field = name.removeprefix(_DELETE_VALUES)
        merged[field] = [item for item in merged.get(field) or [] if item not in value]
    elif value is None or (isinstance(value, dict) and value.get(_DIRECTIVE) == "delete"):
        merged.pop(name, None)
    elif isinstance(value, dict):
        merged[name] = _merge_objects(merged.get(name), value, (*path, name), topology)
    elif isinstance(value, list):
        merged[name] = _merge_lists(merged.get(name), value, (*path, name), topology)
    else:
        merged[name] = value


def _merge_lists(
    target: Any, patch: list[Any], path: tuple[str, ...], topology: Topology
) -> list[Any]:
    current = target if isinstance(target, list) else []
    if topology.is_strategic_set(path):
        return current + [item for item in patch if item not in current]
    key = topology.strategic_key(path)
    if key is None or {_DIRECTIVE: "replace"} in patch:
        return [item for item in patch if item != {_DIRECTIVE: "replace"}]
    merged = {item.get(key): item for item in current}
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise Invalid(f"{'.'.join(path)}: each element needs its merge key {key}")
        if item.get(_DIRECTIVE) == "delete":
            merged.pop(item[key], None)
        else:
            merged[item[key]] = _merge_objects(merged.get(item[key]), item, path, topology)
    return list(merged.values())
