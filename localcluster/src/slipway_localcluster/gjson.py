"""Whether a GJSON path exists in a JSON value: the subset of its syntax that conditions use.

Supported: keys with `*` and `?`, indices, `#`, `#(query)` and `#(query)#`, `@this`, and `[@this]`,
which wraps a value in a list so that a query can match an object. Refused: pipes, other modifiers,
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
    """Valid in GJSON, but not supported here."""


@dataclass(frozen=True, slots=True)
class _Query:
    """Selects elements of a list whose path compares true, or exists where there is no operator."""

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
    """Split at dots that are neither escaped, nor quoted, nor inside a query."""
    part, depth, place = "", 0, 0
    while place < len(path):
        quoted = _QUOTED.match(path, place) if depth else None
        if quoted is not None:
            part, place = part + quoted[0], quoted.end()
            continue
        sign = path[place]
        if sign == "\\" and place + 1 < len(path):
            part += path[place : place + 2]
            place += 2
            continue
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "." and depth == 0:
            yield part
            part = ""
        else:
            part += sign
        place += 1
    yield part


def _part(text: str) -> _Part:
    if text.startswith("#("):
        takes_all = text.endswith(")#")
        if not takes_all and not text.endswith(")"):
            raise UnsupportedPath(f"{text!r} is not closed")
        return _query(text[2:-2] if takes_all else text[2:-1], takes_all=takes_all)
    is_plain = text in ("@this", "[@this]") or not text.startswith(("@", "[", "{", "!"))
    if not is_plain or re.search(r"(?<!\\)\|", text):
        raise UnsupportedPath(f"{text!r} is GJSON syntax that the local cluster does not support")
    return text


def _query(text: str, *, takes_all: bool) -> _Query:
    blank = _QUOTED.sub(lambda match: "_" * len(match[0]), text)
    depth = 0
    for match in re.finditer(r"[()]|==|!=|<=|>=|!%|=|<|>|%", blank):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0 and _OPERATOR.fullmatch(match[0]):
            path, value = text[: match.start()].strip(), text[match.end() :].strip()
            operator = "==" if match[0] == "=" else match[0]
            return _Query(parse(path) if path else (), operator, _value(value), takes_all)
    if "~" in blank:
        raise UnsupportedPath(
            f"{text!r}: ~ is GJSON syntax that the local cluster does not support"
        )
    return _Query(parse(text.strip()), "", None, takes_all)


def _value(text: str) -> Any:
    if text.startswith("~"):
        raise UnsupportedPath(
            f"{text!r}: ~ is GJSON syntax that the local cluster does not support"
        )
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
    """A list, which exists even when it is empty."""
    if not rest:
        return values
    if rest[0] == "#":
        rest = rest[1:]
    children = (_follow(value, rest) for value in values)
    return [child for child in children if child is not _NOTHING]


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
    value = _follow(item, query.path)
    if value is _NOTHING:
        return False
    return not query.operator or _COMPARE[query.operator](value, query.value)


def _is_same_type(left: Any, right: Any) -> bool:
    if any(isinstance(left, kind) or isinstance(right, kind) for kind in _TYPES):
        return type(left) is type(right)
    return (left is None) == (right is None)


def _is_less(left: Any, right: Any) -> bool:
    is_ordered = isinstance(left, str | int | float) and not isinstance(left, bool)
    return is_ordered and _is_same_type(left, right) and left < right


def _is_like(value: Any, pattern: Any) -> bool:
    return isinstance(value, str) and fnmatchcase(value, str(pattern))


def _is_equal(left: Any, right: Any) -> bool:
    return _is_same_type(left, right) and bool(left == right)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": _is_equal,
    "!=": lambda left, right: not _is_equal(left, right),
    "<": _is_less,
    "<=": lambda left, right: _is_less(left, right) or _is_equal(left, right),
    ">": lambda left, right: _is_less(right, left),
    ">=": lambda left, right: _is_less(right, left) or _is_equal(left, right),
    "%": _is_like,
    "!%": lambda left, right: isinstance(left, str) and not _is_like(left, right),
}
