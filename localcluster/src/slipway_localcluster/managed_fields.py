"""Field sets: which manager owns which field, in the format of `metadata.managedFields`.

A path is a tuple of elements written as in FieldsV1: `f:name` for a field, `k:{...}` for a list
element by its key, `v:...` for a value of a set. A set of paths holds leaves and list elements.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slipway_localcluster.errors import JsonObject
from slipway_localcluster.topology import Keys, Topology, item_key

Path = tuple[str, ...]
Leaves = dict[Path, Any]
FieldSet = frozenset[Path]

# The value of a path that stands for "this list element exists".
_ELEMENT = "\0element"
_UNOWNED = frozenset(
    ("f:metadata", f"f:{name}")
    for name in (
        "name",
        "namespace",
        "generateName",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
        "managedFields",
    )
)


@dataclass(frozen=True, slots=True)
class Manager:
    """One entry of managedFields."""

    name: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: FieldSet

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.name, self.operation, self.subresource

    def without(self, paths: Iterable[Path]) -> "Manager":
        return replace(self, fields=self.fields - frozenset(paths))


def read(obj: Mapping[str, Any]) -> list[Manager]:
    return [
        Manager(
            name=entry.get("manager", ""),
            operation=entry.get("operation", "Update"),
            api_version=entry.get("apiVersion", ""),
            subresource=entry.get("subresource", ""),
            time=entry.get("time", ""),
            fields=frozenset(_decode(entry.get("fieldsV1") or {}, ())),
        )
        for entry in obj["metadata"].get("managedFields") or []
    ]


def write(obj: JsonObject, managers: Iterable[Manager]) -> None:
    entries = [_entry(manager) for manager in managers if manager.fields]
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def _entry(manager: Manager) -> JsonObject:
    entry: JsonObject = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": manager.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _encode(manager.fields),
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def _encode(fields: FieldSet) -> JsonObject:
    tree: JsonObject = {}
    for path in sorted(fields):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _drop_dots_of_leaves(tree)


def _drop_dots_of_leaves(node: JsonObject) -> JsonObject:
    if node.keys() == {"."}:
        return {}
    return {name: _drop_dots_of_leaves(child) for name, child in node.items()}


def _decode(node: Mapping[str, Any], path: Path) -> Iterator[Path]:
    if path and (not node or "." in node):
        yield path
    for element, child in node.items():
        if element != ".":
            yield from _decode(child, (*path, element))


def flatten(obj: Mapping[str, Any], topology: Topology) -> Leaves:
    """Return every ownable path of an object with its value."""
    leaves: Leaves = {}
    for name, value in obj.items():
        if name not in ("apiVersion", "kind"):
            _flatten(value, (f"f:{name}",), (name,), topology, leaves)
    return {path: value for path, value in leaves.items() if path[:2] not in _UNOWNED}


def _flatten(value: Any, path: Path, names: Path, topology: Topology, leaves: Leaves) -> None:
    if isinstance(value, dict) and value and not topology.is_atomic_map(names):
        for name, child in value.items():
            _flatten(child, (*path, f"f:{name}"), (*names, name), topology, leaves)
    elif isinstance(value, list) and value and (keys := topology.list_keys(names)):
        for element, item in keyed_items(value, keys, names).items():
            leaves[*path, element] = _ELEMENT
            for name, child in item.items():
                _flatten(child, (*path, element, f"f:{name}"), (*names, name), topology, leaves)
    elif isinstance(value, list) and value and topology.is_set(names):
        for item in value:
            leaves[*path, f"v:{json.dumps(item)}"] = item
    else:
        leaves[path] = value


def keyed_items(items: list[Any], keys: Keys, names: Path) -> dict[str, JsonObject]:
    """Map items by key. The last of several items with the same key wins; decoding refuses them where they are
    applied.
    """
    return {key_element(item, keys, names): item for item in items}


def key_element(item: object, keys: Keys, names: Path) -> str:
    key = item_key(item, keys, names)
    return "k:" + json.dumps(key, sort_keys=True, separators=(",", ":"))


def as_field(path: Path) -> str:
    """Format a path in the notation of conflicts: `.spec.containers[name="x"].image`, for example."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            key = ",".join(
                f"{name}={json.dumps(value)}" for name, value in json.loads(rest).items()
            )
            text += f"[{key}]"
        elif kind == "i":
            text += f"[{rest}]"
        else:
            text += f"[={rest}]"
    return text


def record_update(
    old: JsonObject | None, new: JsonObject, topology: Topology, author: Manager
) -> None:
    """Move the ownership of every changed field to the author of the update."""
    before = flatten(old, topology) if old else {}
    after = flatten(new, topology)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    removed = before.keys() - after.keys()
    managers = read(old) if old else []
    if not changed and not removed:
        write(new, managers)
        return
    previous = next((item for item in managers if item.identity == author.identity), None)
    others = [item.without(changed | removed) for item in managers if item is not previous]
    kept = (previous.fields if previous else frozenset()) - removed
    write(new, [*others, replace(author, fields=kept | changed)])
