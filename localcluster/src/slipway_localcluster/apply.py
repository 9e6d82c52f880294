"""Server-side apply: merge, ownership, conflicts, and removal of fields no longer applied."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from slipway_localcluster.errors import Cause, Conflict, JsonObject
from slipway_localcluster.managed_fields import (
    FieldSet,
    Leaves,
    Manager,
    Path,
    as_field,
    flatten,
    key_element,
    keyed_items,
    read,
    write,
)
from slipway_localcluster.topology import Topology


def apply(
    live: JsonObject | None,
    applied: JsonObject,
    topology: Topology,
    author: Manager,
    *,
    force: bool,
) -> JsonObject:
    """Return the object after `author` applies `applied`; `live` itself if nothing changes."""
    applied = without_nulls(applied)
    leaves = flatten(applied, topology)
    fields = frozenset(leaves)
    if live is None:
        write(applied, [replace(author, fields=fields)])
        return applied
    managers = read(live)
    previous = next((item for item in managers if item.identity == author.identity), None)
    others = [item for item in managers if item is not previous]
    conflicts = list(_conflicts(flatten(live, topology), leaves, others))
    if conflicts and not force:
        raise _conflict(conflicts)
    lost = {path for path, _ in conflicts}
    others = [item.without(lost) for item in others]
    merged = merge(live, applied, topology)
    if previous is not None:
        owned_by_others = {path for item in others for path in item.fields}
        _remove(merged, previous.fields - fields, fields | owned_by_others, topology)
    if merged == live and previous is not None and previous.fields == fields and not lost:
        return live
    write(merged, [*others, replace(author, fields=fields)])
    return merged


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _conflicts(
    live: Leaves, applied: Leaves, others: Iterable[Manager]
) -> Iterator[tuple[Path, Manager]]:
    differing = [path for path in applied if path in live and live[path] != applied[path]]
    for other in others:
        for path in differing:
            if path in other.fields:
                yield path, other


def _conflict(conflicts: list[tuple[Path, Manager]]) -> Conflict:
    causes = [
        Cause(
            "FieldManagerConflict", f'conflict with "{other.name}"{_suffix(other)}', as_field(path)
        )
        for path, other in conflicts
    ]
    count = len(causes)
    lines = "\n".join(f"- {cause.message}: {cause.field}" for cause in causes)
    listed = f"{causes[0].message}: {causes[0].field}" if count == 1 else f"\n{lines}"
    plural = "conflict" if count == 1 else "conflicts"
    return Conflict(f"Apply failed with {count} {plural}: {listed}", causes=causes)


def _suffix(manager: Manager) -> str:
    subresource = f' with subresource "{manager.subresource}"' if manager.subresource else ""
    return f"{subresource} using {manager.api_version}"


def merge(live: JsonObject, applied: JsonObject, topology: Topology) -> JsonObject:
    """Return a new object: `applied` over `live`, lists merged by their keys."""
    merged = dict(live)
    for name, value in applied.items():
        merged[name] = _merge(live.get(name), value, (name,), topology)
    return merged


def _merge(live: Any, applied: Any, names: Path, topology: Topology) -> Any:
    if isinstance(live, dict) and isinstance(applied, dict) and not topology.is_atomic_map(names):
        merged = dict(live)
        for name, value in applied.items():
            merged[name] = _merge(live.get(name), value, (*names, name), topology)
        return merged
    if isinstance(live, list) and isinstance(applied, list):
        return _merge_lists(live, applied, names, topology)
    return applied


def _merge_lists(live: list[Any], applied: list[Any], names: Path, topology: Topology) -> list[Any]:
    if topology.is_set(names):
        return live + [item for item in applied if item not in live]
    keys = topology.list_keys(names)
    if keys is None:
        return applied
    merged: dict[str, Any] = dict(keyed_items(live, keys, names))
    for element, item in keyed_items(applied, keys, names).items():
        merged[element] = _merge(merged.get(element), item, names, topology)
    return list(merged.values())


def _remove(obj: JsonObject, removed: FieldSet, kept: FieldSet, topology: Topology) -> None:
    """Remove the paths from `obj`, except those in `kept` and the parents of those."""
    prefixes = {path[:length] for path in kept for length in range(1, len(path) + 1)}
    # Elements before their fields: the key of an element is among its fields.
    for path in sorted(removed - prefixes, key=len):
        if not _is_key_of_kept_element(path, prefixes):
            _remove_path(obj, path, (), prefixes, topology)


def _is_key_of_kept_element(path: Path, kept: set[Path]) -> bool:
    if len(path) < 2 or not path[-2].startswith("k:") or path[:-1] not in kept:
        return False
    return path[-1][2:] in json.loads(path[-2][2:])


def _remove_path(
    node: Any, path: Path, done: Path, prefixes: set[Path], topology: Topology
) -> None:
    element, rest = path[0], path[1:]
    here = (*done, element)
    index = _locate(node, element, done, topology)
    if index is None:
        return
    if not rest:
        del node[index]
        return
    child = node[index]
    child = child.copy() if isinstance(child, dict | list) else child
    node[index] = child
    _remove_path(child, rest, here, prefixes, topology)
    if not child and isinstance(child, dict | list) and here not in prefixes:
        del node[index]


def _locate(node: Any, element: str, done: Path, topology: Topology) -> Any:
    """Return the key or position of a path element inside its parent. None if it is absent."""
    kind, _, rest = element.partition(":")
    if isinstance(node, dict):
        return rest if kind == "f" and rest in node else None
    if not isinstance(node, list):
        return None
    names = tuple(part[2:] for part in done if part.startswith("f:"))
    keys = topology.list_keys(names)
    for position, item in enumerate(node):
        if kind == "v" and element == f"v:{json.dumps(item)}":
            return position
        if kind == "k" and keys and key_element(item, keys, names) == element:
            return position
    return None
