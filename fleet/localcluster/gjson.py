"""Whether a GJSON path is there in a JSON value: the part of its syntax that conditions use.

Keys with `*` and `?`, indices, `#`, `#(query)` and `#(query)#`, `@this`, and `[@this]`, which makes a
list of one so that a query can look at an object. Left out, and refused: pipes, other modifiers,
other multipaths, `~`.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

_OPERATOR = re.compile(r"==|!=|<=|>=|!%|=|<|>|%")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_NOTHING = object()
_TYPES: tuple[type, ...] = (bool, str, dict, list)


class UnsupportedPath(ValueError):
    """GJSON may take it; this does not."""


@dataclass(frozen=True, slots=True)
class _Query:
    """Elements of a list for which the path compares so; without an operator: has it."""

    path: "tuple[_Part, ...]"
    operator: str
    value: Any
    takes_all: bool


_Part = str | _Query


def exists(value: Any, path: str) -> bool:
    """Raises UnsupportedPath."""
    return _follow(value, parse(path)) is not _NOTHING


def parse(path: str) -> tuple[_Part, ...]:
    return tuple(_part(text) for text in _split(path))


def _split(path: str) -> Iterator[str]:
    """At dots that are neither escaped, nor quoted, nor inside a query."""
    found, depth, place = "", 0, 0
    while place < len(path):
        quoted = _QUOTED.match(path, place) if depth else None
        if quoted is not None:
            found, place = found + quoted[0], quoted.end()
            continue
        sign = path[place]
        if sign == "\\" and place + 1 < len(path):
            found += path[place : place + 2]
            place += 2
            continue
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "." and depth == 0:
            yield found
            found = ""
        else:
            found += sign
        place += 1
    yield found


def _part(text: str) -> _Part:
    if text.startswith("#("):
        takes_all = text.endswith(")#")
        if not takes_all and not text.endswith(")"):
            raise UnsupportedPath(f"{text!r} is not closed")
        return _query(text[2:-2] if takes_all else text[2:-1], takes_all=takes_all)
    is_plain = text in ("@this", "[@this]") or not text.startswith(("@", "[", "{", "!"))
    if not is_plain or re.search(r"(?<!\\)\|", text):
        raise UnsupportedPath(f"{text!r} is more of GJSON than the local cluster knows")
    return text


def _query(text: str, *, takes_all: bool) -> _Query:
    blank = _QUOTED.sub(lambda found: "_" * len(found[0]), text)
    depth = 0
    for found in re.finditer(r"[()]|==|!=|<=|>=|!%|=|<|>|%", blank):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0 and _OPERATOR.fullmatch(found[0]):
            path, value = text[: found.start()].strip(), text[found.end() :].strip()
            operator = "==" if found[0] == "=" else found[0]
            return _Query(parse(path) if path else (), operator, _value(value), takes_all)
    if "~" in blank:
        raise UnsupportedPath(f"{text!r}: ~ is more of GJSON than the local cluster knows")
    return _Query(parse(text.strip()), "", None, takes_all)


def _value(text: str) -> Any:
    if text.startswith("~"):
        raise UnsupportedPath(f"{text!r}: ~ is more of GJSON than the local cluster knows")
    try:
        return json.loads(text)
    except ValueError:
        return text


def _follow(value: Any, parts: Sequence[_Part]) -> Any:
    for place, part in enumerate(parts):
        if isinstance(part, _Query):
            if not isinstance(value, list):
                return _NOTHING
            matching = [item for item in value if _matches(item, part)]
            if part.takes_all:
                return _each(matching, parts[place + 1 :])
            if not matching:
                return _NOTHING
            value = matching[0]
        elif part == "#" and isinstance(value, list):
            rest = parts[place + 1 :]
            return _each(value, rest) if rest else len(value)
        else:
            value = _child(value, part)
            if value is _NOTHING:
                return _NOTHING
    return value


def _each(values: list[Any], rest: Sequence[_Part]) -> list[Any]:
    """A list even when nothing is in it, and so it is there."""
    if not rest:
        return values
    if rest[0] == "#":
        rest = rest[1:]
    found = (_follow(value, rest) for value in values)
    return [value for value in found if value is not _NOTHING]


def _child(value: Any, part: str) -> Any:
    if part == "@this":
        return value
    if part == "[@this]":
        return [value]
    name = re.sub(r"\\(.)", r"\1", part)
    if isinstance(value, dict):
        if name != part or not re.search(r"[*?]", part):
            return value.get(name, _NOTHING)
        return next((item for key, item in value.items() if fnmatchcase(key, part)), _NOTHING)
    if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
        return value[int(part)]
    return _NOTHING


def _matches(item: Any, query: _Query) -> bool:
    found = _follow(item, query.path)
    if found is _NOTHING:
        return False
    return not query.operator or _COMPARE[query.operator](found, query.value)


def _is_same_kind(one: Any, other: Any) -> bool:
    if any(isinstance(one, kind) or isinstance(other, kind) for kind in _TYPES):
        return type(one) is type(other)
    return (one is None) == (other is None)


def _is_less(one: Any, other: Any) -> bool:
    is_ordered = isinstance(one, str | int | float) and not isinstance(one, bool)
    return is_ordered and _is_same_kind(one, other) and one < other


def _is_like(one: Any, pattern: Any) -> bool:
    return isinstance(one, str) and fnmatchcase(one, str(pattern))


def _is_equal(one: Any, other: Any) -> bool:
    return _is_same_kind(one, other) and bool(one == other)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": _is_equal,
    "!=": lambda one, other: not _is_equal(one, other),
    "<": _is_less,
    "<=": lambda one, other: _is_less(one, other) or _is_equal(one, other),
    ">": lambda one, other: _is_less(other, one),
    ">=": lambda one, other: _is_less(other, one) or _is_equal(one, other),
    "%": _is_like,
    "!%": lambda one, other: isinstance(one, str) and not _is_like(one, other),
}
