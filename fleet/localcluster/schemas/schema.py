"""What one value may be."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ABSENT = object()
QUANTITY, BASE64 = "quantity", "base64"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in CEL on the value (`self`); `place` is the part of it that a refusal names."""

    expression: str
    message: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    """Empty `types` allows anything; `is_open` allows unknown fields.

    Schemas of parts may be functions without arguments: types refer to themselves, and large files
    are read as far as they are needed. `list_keys` identify the items of a list, which must differ.
    """

    types: frozenset[str] = frozenset()
    is_open: bool = True
    required: tuple[str, ...] = ()
    fields: Mapping[str, "Part"] = field(default_factory=dict)
    values: "Part | None" = None
    items: "Part | None" = None
    enum: tuple[Any, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    # Of a text, a list or a map.
    min_size: int = 0
    max_size: int | None = None
    pattern: re.Pattern[str] | None = None
    form: str = ""
    list_keys: tuple[str, ...] = ()
    is_set: bool = False
    default: Any = ABSENT
    rules: tuple[Rule, ...] = ()

    def property(self, name: str) -> "Schema | None":
        return _resolve(self.fields.get(name))

    def map_value(self) -> "Schema | None":
        return _resolve(self.values)

    def item(self) -> "Schema | None":
        return _resolve(self.items)


Part = Schema | Callable[[], Schema]
ANYTHING = Schema()
TEXT = Schema(frozenset({"string"}))
BOOLEAN = Schema(frozenset({"boolean"}))
NUMBER_OR_TEXT = frozenset({"string", "number", "integer"})


def number(
    least: float | None = None, most: float | None = None, *, default: Any = ABSENT
) -> Schema:
    return Schema(frozenset({"integer"}), minimum=least, maximum=most, default=default)


def text(
    pattern: str = "", *, least: int = 0, most: int | None = None, default: Any = ABSENT
) -> Schema:
    compiled = re.compile(pattern) if pattern else None
    return Schema(TEXT.types, pattern=compiled, min_size=least, max_size=most, default=default)


def choice(*values: str, default: Any = ABSENT) -> Schema:
    return Schema(TEXT.types, enum=values, default=default)


def list_of(
    item: Part, *, most: int | None = None, keys: tuple[str, ...] = (), rules: tuple[Rule, ...] = ()
) -> Schema:
    types = frozenset({"array"})
    return Schema(types, items=item, max_size=most, list_keys=keys, rules=rules)


def map_of(value: Part) -> Schema:
    return Schema(frozenset({"object"}), values=value)


def closed(fields: Mapping[str, Part], *required: str, rules: tuple[Rule, ...] = ()) -> Schema:
    """An object with these fields and no others."""
    types = frozenset({"object"})
    return Schema(types, is_open=False, fields=fields, required=required, rules=rules)


def opened(**fields: Part) -> Schema:
    """An object with these fields and any others."""
    return Schema(frozenset({"object"}), fields=fields)


def _resolve(part: Part | None) -> Schema | None:
    return part() if callable(part) else part
