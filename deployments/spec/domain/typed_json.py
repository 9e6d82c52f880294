"""From JSON to the frozen parts of a spec: unknown names and wrong kinds are told per field."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

_WORDS = {
    bool: "is not true or false.",
    int: "is not a whole number.",
    float: "is not a number.",
    str: "is not text.",
}


_KNOWN_HINTS: dict[Any, Mapping[str, Any]] = {}


def hints_of(kind: Any) -> Mapping[str, Any]:
    """Name to type of the fields; looked up once, because every spec asks."""
    if kind not in _KNOWN_HINTS:
        _KNOWN_HINTS[kind] = get_type_hints(kind)
    return _KNOWN_HINTS[kind]


def read(kind: Any, data: Any, path: str, found: dict[str, str]) -> Any:
    """An object of `kind`, or None with what is wrong added to `found` by dotted path."""
    if not isinstance(data, Mapping):
        found[path] = f"must be an object with {', '.join(hints_of(kind))}."
        return None
    hints, before = hints_of(kind), len(found)
    for name in data:
        if name not in hints:
            found[f"{path}.{name}"] = f'There is no field "{name}". Leave it out.'
    values = {
        name: _value(hints[name], item, f"{path}.{name}", found)
        for name, item in data.items()
        if name in hints
    }
    for field in fields(kind):
        if field.default is MISSING and field.default_factory is MISSING and field.name not in data:
            found[f"{path}.{field.name}"] = f"State {field.name}."
    return None if len(found) > before else kind(**values)


def read_list(kind: Any, data: Any, path: str, found: dict[str, str]) -> Any:
    """A tuple of objects of `kind`; what is wrong is told by index: packed.0.version."""
    if not isinstance(data, list):
        found[path] = f"must be a list of objects with {', '.join(hints_of(kind))}."
        return None
    return tuple(read(kind, item, f"{path}.{index}", found) for index, item in enumerate(data))


def _value(hint: Any, item: Any, path: str, found: dict[str, str]) -> Any:
    if get_origin(hint) is types.UnionType:
        if item is None:
            return None
        hint = next(part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is tuple and isinstance(item, list):
        return tuple(item)
    return read(hint, item, path, found) if is_dataclass(hint) else item


def wrong_kinds(value: Any, path: str = "") -> dict[str, str]:
    """Fields of the dataclass, and of those inside it, that do not hold what they declare."""
    found: dict[str, str] = {}
    for name, hint in hints_of(type(value)).items():
        _check(hint, getattr(value, name), f"{path}{name}", found)
    return found


def _check(hint: Any, item: Any, path: str, found: dict[str, str]) -> None:
    if get_origin(hint) is types.UnionType:
        if item is None:
            return
        hint = next(part for part in get_args(hint) if part is not type(None))
    if hint in _WORDS:
        if not _is_of(hint, item):
            found[path] = f"{json.dumps(item, ensure_ascii=False, default=str)} {_WORDS[hint]}"
    elif is_dataclass(hint):
        if type(item) is hint:
            found |= wrong_kinds(item, f"{path}.")
        else:
            found[path] = f"must be an object with {', '.join(hints_of(hint))}."
    else:
        _check_items(get_args(hint)[0], item, path, found)


def _check_items(hint: Any, item: Any, path: str, found: dict[str, str]) -> None:
    if hint is int and not _are_numbers(item):
        found[path] = "must be a list of whole numbers"
    elif is_dataclass(hint):
        for index, one in enumerate(item):
            _check(hint, one, f"{path}.{index}", found)


def _are_numbers(item: Any) -> bool:
    return isinstance(item, tuple) and all(_is_of(int, one) for one in item)


def _is_of(kind: type, item: Any) -> bool:
    if kind is bool:
        return isinstance(item, bool)
    if isinstance(item, bool):
        return False
    return isinstance(item, (int, float) if kind is float else kind)
