"""The schema of one value."""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ABSENT = object()
QUANTITY, BASE64, DATE_TIME = "quantity", "base64", "date-time"


@dataclass(frozen=True, slots=True)
class CelRule:
    """A rule in CEL on the value (`self`); `place` is the part of it that a refusal names."""

    expression: str
    message: str
    place: str = ""


# Compared by identity: each is made once and kept, and holds others that refer back to it.
@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The schema of a value. Empty `types` allows anything; `is_open` allows unknown fields.

    Schemas of parts may be functions without arguments: types refer to themselves, and large files are read as far
    as they are needed. `list_keys` identify the items of a list, which must differ.
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
    rules: tuple[CelRule, ...] = ()

    def part_named(self, name: str) -> "Schema | None":
        """Return the schema of a field, or of a map's values. None if there is none."""
        part = self.fields.get(name, self.values)
        return part() if callable(part) else part

    def item(self) -> "Schema | None":
        return self.items() if callable(self.items) else self.items


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
    item: Part,
    *,
    least: int = 0,
    most: int | None = None,
    keys: tuple[str, ...] = (),
    is_set: bool = False,
    rules: tuple[CelRule, ...] = (),
) -> Schema:
    return Schema(
        frozenset({"array"}),
        items=item,
        min_size=least,
        max_size=most,
        list_keys=keys,
        is_set=is_set,
        rules=rules,
    )


def map_of(value: Part) -> Schema:
    return Schema(frozenset({"object"}), values=value)


def define_closed(
    fields: Mapping[str, Part], *required: str, rules: tuple[CelRule, ...] = ()
) -> Schema:
    """Return the schema of an object with these fields and no others."""
    types = frozenset({"object"})
    return Schema(types, is_open=False, fields=fields, required=required, rules=rules)


def define_open(**fields: Part) -> Schema:
    """Return the schema of an object with these fields and any others."""
    return Schema(frozenset({"object"}), fields=fields)


@functools.cache
def is_limited(schema: Schema) -> bool:
    """Return whether the schema limits values. False if any value of its types will do."""
    bounds = (schema.minimum, schema.maximum, schema.max_size, schema.pattern)
    is_bounded = any(bound is not None for bound in bounds) or schema.min_size > 0
    return bool(is_bounded or schema.enum or schema.form or schema.list_keys or schema.is_set)


@functools.cache
def defaults_of(schema: Schema) -> Mapping[str, Schema]:
    """Return the fields that have a default."""
    parts = ((name, schema.part_named(name)) for name in schema.fields)
    return {name: part for name, part in parts if part and part.default is not ABSENT}
