"""Parse JSON and YAML from users within bounds.

A few hundred bytes can expand to gigabytes (YAML aliases), exhaust the stack (nesting), or contain
values that cannot be stored or computed with (lone surrogates, infinity, a number of 5,000 digits).
All of these are rejected here with their location.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

# Longer paths are cut.
_LONGEST_PLACE: Final = 200
_MOST_DIGITS: Final = 20
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class UnreadableDocument(ValueError):
    """A document cannot be read. `place` is a dotted path (`spec.env.0`), empty for the document itself.
    `is_syntax`: the text cannot be parsed, as opposed to a value that cannot be used.
    """

    def __init__(self, message: str, *, place: str = "", is_syntax: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.is_syntax = is_syntax


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a document that is read. `largest` bounds the magnitude of whole numbers, `largest_float` of
    the others.
    """

    most_bytes: int = 2_621_440
    most_depth: int = 64
    most_values: int = 1_000_000
    largest: int = 2**64
    largest_float: float = math.inf
    may_hold_nul: bool = False


DEFAULT: Final = Bounds()
YAML: Final = Bounds(
    most_bytes=40_000, most_depth=20, most_values=5_000, largest=2**63, largest_float=2.0**63
)


class _TooManyDigits:
    """Placeholder for a number with too many digits."""


_TOO_MANY_DIGITS: Final = _TooManyDigits()


def read_json(text: str | bytes, bounds: Bounds = DEFAULT) -> Any:
    """Raises Unreadable."""
    content = _bytes_of(text, bounds)
    try:
        value = json.loads(content, parse_int=_integer)
    except RecursionError as error:
        raise _too_deep(bounds) from error
    except UnicodeDecodeError as error:
        raise UnreadableDocument("The text is not UTF-8.", is_syntax=True) from error
    except ValueError as error:
        raise UnreadableDocument(f"Invalid JSON: {error}.", is_syntax=True) from error
    check(value, bounds)
    return value


def read_yaml(text: str | bytes, bounds: Bounds = YAML) -> Any:
    """Read YAML: text, numbers, true and false, null, lists and mappings with text as keys; dates stay text.

    Raises Unreadable.
    """
    content = _bytes_of(text, bounds)
    try:
        _check_events(content, bounds)
        value = yaml.load(content, Loader=_Loader)  # noqa: S506  a SafeLoader with fewer types
    except UnreadableDocument:
        raise
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML lets Python's own errors out for escapes such as \U00110000.
        raise UnreadableDocument(f"Invalid YAML{_line_of(error)}.", is_syntax=True) from error
    check(value, bounds)
    return value


def check(value: Any, bounds: Bounds = DEFAULT) -> None:
    """Check a parsed value. Raises Unreadable."""
    count = 0
    open_levels: list[Iterator[tuple[str, Any]]] = [iter([("", value)])]
    names: list[str] = []
    while open_levels:
        step = next(open_levels[-1], None)
        if step is None:
            open_levels.pop()
            if names:
                names.pop()
            continue
        name, item = step
        count += 1
        if count > bounds.most_values:
            raise UnreadableDocument(f"It contains more than {bounds.most_values:,} values.")
        if problem := _problem_of(item, bounds):
            raise UnreadableDocument(problem, place=_place([*names, name]))
        if isinstance(item, dict | list):
            if len(open_levels) > bounds.most_depth:
                raise _too_deep(bounds, _place([*names, name]))
            open_levels.append(_items(item, [*names, name], bounds))
            names.append(name)


def _items(item: Any, names: list[str], bounds: Bounds) -> Iterator[tuple[str, Any]]:
    if isinstance(item, list):
        return ((str(index), value) for index, value in enumerate(item))
    for key in item:
        if problem := _problem_of(key, bounds):
            raise UnreadableDocument(f"A key cannot be used. {problem}", place=_place(names))
    return iter(item.items())


def _problem_of(item: Any, bounds: Bounds) -> str:
    if isinstance(item, str):
        return _text_problem(item, bounds)
    if item is _TOO_MANY_DIGITS:
        return f"A number has more than {_MOST_DIGITS} digits."
    if isinstance(item, float):
        if not math.isfinite(item):
            return "NaN and infinity cannot be used here."
        return "The number is too large." if abs(item) >= bounds.largest_float else ""
    if isinstance(item, int) and abs(item) >= bounds.largest:
        return "The number is too large."
    return ""


def _text_problem(text: str, bounds: Bounds) -> str:
    if not text.isascii() and _SURROGATE.search(text):
        return "The text contains half a character (a lone surrogate)."
    if "\0" in text and not bounds.may_hold_nul:
        return "The text contains a NUL character."
    return ""


def _bytes_of(text: str | bytes, bounds: Bounds) -> bytes:
    try:
        content = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise UnreadableDocument(
            "The text contains half a character (a lone surrogate)."
        ) from error
    if len(content) > bounds.most_bytes:
        raise UnreadableDocument(
            f"It has {len(content):,} bytes; the maximum is {bounds.most_bytes:,}.",
            is_syntax=True,
        )
    return content


def _too_deep(bounds: Bounds, place: str = "") -> UnreadableDocument:
    return UnreadableDocument(
        f"It is nested more than {bounds.most_depth} levels deep.", place=place, is_syntax=True
    )


def _place(names: list[str]) -> str:
    """Return the dotted path, without unprintable characters, because keys may be hostile."""
    text = ".".join(name for name in names if name)
    return "".join(letter for letter in text if letter.isprintable())[:_LONGEST_PLACE]


def _integer(text: str) -> Any:
    return int(text) if len(text.lstrip("+-")) <= _MOST_DIGITS else _TOO_MANY_DIGITS


class _Loader(yaml.SafeLoader):
    """YAML's core types only: no dates, no base 60, no binary, no sets, no merge keys."""

    yaml_implicit_resolvers: dict[str, Any] = {}


def _add_type(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


_add_type("null", r"^(?:~|null|Null|NULL|)$", "~nN\0")
# Includes the booleans of YAML 1.1: "no" read as text would count as true.
_add_type("bool", r"^(?:yes|no|true|false|on|off)$", "yntfo")
_add_type("bool", r"^(?:Yes|No|True|False|On|Off|YES|NO|TRUE|FALSE|ON|OFF)$", "YNTFO")
_add_type("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789")
_add_type("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789")
_add_type("float", r"^[-+]?[0-9]+[eE][-+]?[0-9]+$", "-+0123456789")
_add_type("float", r"^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$", "-+.")
# The empty scalar has no first character.
_Loader.yaml_implicit_resolvers.setdefault("", []).append(
    ("tag:yaml.org,2002:null", re.compile(r"^$"))
)


def _construct_integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    return _integer(str(loader.construct_scalar(node)))


def _construct_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise UnreadableDocument(
                f"Line {line}: write the name as text, in quotes.", is_syntax=True
            )
        if key in mapping:
            raise UnreadableDocument(f"Line {line}: {key[:60]} is defined twice.", is_syntax=True)
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_integer)
_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def _check_events(content: bytes, bounds: Bounds) -> None:
    """Reject aliases, which multiply values, and tags, which choose types, before building values."""
    depth = count = 0
    for event in yaml.parse(content, Loader=yaml.SafeLoader):
        line = (event.start_mark.line if event.start_mark else 0) + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise UnreadableDocument(
                f"Line {line}: aliases and anchors (* and &) are not supported. Write out the value.",
                is_syntax=True,
            )
        if getattr(event, "tag", None):
            raise UnreadableDocument(
                f"Line {line}: tags (!) are not supported. Remove them.", is_syntax=True
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        count += isinstance(event, yaml.NodeEvent)
        if depth > bounds.most_depth:
            raise _too_deep(bounds)
        if count > bounds.most_values:
            raise UnreadableDocument(f"It contains more than {bounds.most_values:,} values.")


def _line_of(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return f" in line {mark.line + 1}"
    # Characters that YAML does not allow, such as NUL, are detected before lines are counted.
    position = getattr(error, "position", None)
    return "" if position is None else f": character {position + 1} is not allowed"
