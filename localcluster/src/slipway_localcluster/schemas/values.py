"""A value against its schema: unknown fields, types, limits, and rules."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.formats import is_base64, is_date_time, is_quantity
from slipway_localcluster.schemas import cel
from slipway_localcluster.schemas.schema import (
    ANYTHING,
    BASE64,
    DATE_TIME,
    QUANTITY,
    Schema,
    defaults_of,
    is_limited,
)

_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
_FORMS: dict[str, Callable[[Any], bool]] = {
    QUANTITY: is_quantity,
    BASE64: is_base64,
    DATE_TIME: is_date_time,
}
FORM_FAULTS = {
    QUANTITY: "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    BASE64: "illegal base64 data",
    DATE_TIME: "Invalid value: must be of type date-time",
}


# A value, its schema, and its path.
Part = tuple[Any, Schema, str]


def json_type(value: Any) -> str:
    return _JSON_TYPES.get(type(value), "object")


def has_type(value: Any, schema: Schema) -> bool:
    return value is None or not schema.types or json_type(value) in schema.types


def find_parts(value: Any, schema: Schema, path: str) -> list[Part]:
    """Yield the value and all that it holds, as far as schemas are known: each before what it holds itself."""
    parts: list[Part] = []
    _add_parts(parts, value, schema, path)
    return parts


def _add_parts(parts: list[Part], value: Any, schema: Schema, path: str) -> None:
    parts.append((value, schema, path))
    if isinstance(value, dict):
        dot = f"{path}." if path else ""
        for name, child in value.items():
            if (inner := schema.part_named(name)) is not None:
                _add_parts(parts, child, inner, f"{dot}{name}")
    elif isinstance(value, list) and (item := schema.item()) is not None:
        for index, child in enumerate(value):
            _add_parts(parts, child, item, f"{path}[{index}]")


def prune(value: Any, schema: Schema, path: str, unknown: list[str]) -> Any:
    """Return the value without its unknown fields, whose paths are added to `unknown`."""
    if isinstance(value, dict):
        return _prune_object(value, schema, path, unknown)
    item = schema.item()
    if isinstance(value, list) and item is not None:
        return [
            prune(child, item, f"{path}[{index}]", unknown) for index, child in enumerate(value)
        ]
    return value


def _prune_object(value: JsonObject, schema: Schema, path: str, unknown: list[str]) -> JsonObject:
    kept: JsonObject = {}
    for name, child in value.items():
        place = f"{path}.{name}" if path else name
        inner = schema.part_named(name)
        if inner is not None:
            kept[name] = prune(child, inner, place, unknown)
        elif schema.is_open:
            kept[name] = child
        else:
            unknown.append(place)
    return kept


def find_type_faults(parts: Iterable[Part]) -> list[Part]:
    """Find the parts whose types are wrong. The schema of what they hold is unknown."""
    return [part for part in parts if not has_type(part[0], part[1])]


def find_form_faults(parts: Iterable[Part]) -> list[str]:
    """Find the forms as which texts cannot be read. Types must be right."""
    return [
        schema.form
        for value, schema, _ in parts
        if schema.form and value is not None and not _FORMS[schema.form](value)
    ]


def find_missing(parts: Iterable[Part]) -> list[str]:
    """Find the paths of required fields that are absent."""
    return [
        f"{path}.{name}" if path else name
        for value, schema, path in parts
        if schema.required and isinstance(value, dict)
        for name in schema.required
        if value.get(name) is None
    ]


def with_defaults(value: Any, schema: Schema) -> Any:
    """Return a copy in which absent fields have their defaults."""
    if isinstance(value, list) and (item := schema.item()) is not None:
        return [with_defaults(child, item) for child in value]
    if not isinstance(value, dict):
        return value
    completed = {
        name: with_defaults(child, schema.part_named(name) or ANYTHING)
        for name, child in value.items()
    }
    for name, inner in defaults_of(schema).items():
        if name not in completed:
            completed[name] = with_defaults(inner.default, inner)
    return completed


def find_limit_faults(parts: Iterable[Part]) -> Iterator[Cause]:
    """Find violations of enums, bounds, sizes, patterns and unique items. Types must be right."""
    for value, schema, path in parts:
        if value is not None and is_limited(schema):
            yield from _scalar_faults(value, schema, path)
            yield from _size_faults(value, schema, path)
            if isinstance(value, list):
                yield from _uniqueness_faults(value, schema, path)


def _scalar_faults(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    if schema.enum and value not in schema.enum:
        allowed = ", ".join(f'"{item}"' for item in schema.enum)
        message = f'Unsupported value: "{value}": supported values: {allowed}'
        yield Cause("FieldValueNotSupported", message, path)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if schema.minimum is not None and value < schema.minimum:
            message = f"Invalid value: {value}: should be greater than or equal to {schema.minimum}"
            yield Cause("FieldValueInvalid", message, path)
        if schema.maximum is not None and value > schema.maximum:
            message = f"Invalid value: {value}: should be less than or equal to {schema.maximum}"
            yield Cause("FieldValueInvalid", message, path)
    if isinstance(value, str) and schema.pattern is not None and not schema.pattern.search(value):
        message = f"Invalid value: \"{value}\": should match '{schema.pattern.pattern}'"
        yield Cause("FieldValueInvalid", message, path)
    if schema.form and not _FORMS[schema.form](value):
        yield Cause("FieldValueInvalid", FORM_FAULTS[schema.form], path)


def _size_faults(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    if not isinstance(value, str | list | dict):
        return
    if len(value) < schema.min_size:
        message = f"Invalid value: should have at least {schema.min_size} characters or items"
        yield Cause("FieldValueInvalid", message, path)
    if schema.max_size is not None and len(value) > schema.max_size:
        reason = "FieldValueTooLong" if isinstance(value, str) else "FieldValueTooMany"
        yield Cause(reason, f"must have at most {schema.max_size} characters or items", path)


def _uniqueness_faults(items: list[Any], schema: Schema, path: str) -> Iterator[Cause]:
    if not schema.list_keys and not schema.is_set:
        return
    seen: list[Any] = []
    for index, item in enumerate(items):
        key = [item.get(name) for name in schema.list_keys] if schema.list_keys else item
        if key in seen:
            yield Cause("FieldValueDuplicate", f"Duplicate value: {key}", f"{path}[{index}]")
        seen.append(key)


def find_rule_faults(parts: Iterable[Part]) -> Iterator[Cause]:
    """Find violations of rules in CEL, on a value that is complete and right otherwise."""
    for value, schema, path in parts:
        if value is not None and schema.rules and not cel.are_met(schema.rules, value):
            for rule in schema.rules:
                if not cel.are_met((rule,), value):
                    message = f"Invalid value: {rule.message}"
                    yield Cause("FieldValueInvalid", message, path + rule.place)
