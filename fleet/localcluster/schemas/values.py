"""A value against its schema: unknown fields, types, limits, and rules."""

from collections.abc import Callable, Iterator
from typing import Any

from fleet.localcluster.errors import Cause, JsonObject
from fleet.localcluster.rules.formats import is_base64, is_quantity
from fleet.localcluster.schemas import cel
from fleet.localcluster.schemas.schema import ABSENT, BASE64, QUANTITY, Schema

_JSON_TYPES = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
_FORMS: dict[str, Callable[[Any], bool]] = {QUANTITY: is_quantity, BASE64: is_base64}
FORM_FAULTS = {
    QUANTITY: "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    BASE64: "illegal base64 data",
}


def json_type(value: Any) -> str:
    # bool before int: in Python True is an int.
    for python_type, name in _JSON_TYPES:
        if isinstance(value, python_type):
            return name
    return "array" if isinstance(value, list) else "object"


def has_type(value: Any, schema: Schema) -> bool:
    return value is None or not schema.types or json_type(value) in schema.types


def find_parts(value: Any, schema: Schema, path: str) -> Iterator[tuple[Any, Schema, str]]:
    """The parts of a value whose schemas are known, with their paths."""
    if isinstance(value, dict):
        dot = f"{path}." if path else ""
        for name, child in value.items():
            inner = schema.property(name) or schema.map_value()
            if inner is not None:
                yield child, inner, f"{dot}{name}"
    elif isinstance(value, list) and (item := schema.item()) is not None:
        for index, child in enumerate(value):
            yield child, item, f"{path}[{index}]"


def prune(value: Any, schema: Schema, path: str, unknown: list[str]) -> Any:
    """The value without its unknown fields, whose paths are added to `unknown`."""
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
        inner = schema.property(name) or schema.map_value()
        if inner is not None:
            kept[name] = prune(child, inner, place, unknown)
        elif schema.is_open:
            kept[name] = child
        else:
            unknown.append(place)
    return kept


def find_type_faults(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, Any, Schema]]:
    """The places whose types are wrong: path, value and schema."""
    if not has_type(value, schema):
        yield path, value, schema
        return
    for part in find_parts(value, schema, path):
        yield from find_type_faults(*part)


def find_form_faults(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """Texts that cannot be read as what they stand for: path and form. Types must be right."""
    if schema.form and value is not None and not _FORMS[schema.form](value):
        yield path, schema.form
    for part in find_parts(value, schema, path):
        yield from find_form_faults(*part)


def find_missing(value: Any, schema: Schema, path: str) -> Iterator[str]:
    """Required fields that are absent. A status may be incomplete."""
    if path == "status":
        return
    if isinstance(value, dict):
        dot = f"{path}." if path else ""
        yield from (f"{dot}{name}" for name in schema.required if value.get(name) is None)
    for part in find_parts(value, schema, path):
        yield from find_missing(*part)


def with_defaults(value: Any, schema: Schema) -> Any:
    """A copy in which absent fields have their defaults."""
    if isinstance(value, list) and (item := schema.item()) is not None:
        return [with_defaults(child, item) for child in value]
    if not isinstance(value, dict):
        return value
    completed = {
        name: with_defaults(child, schema.property(name) or schema.map_value() or Schema())
        for name, child in value.items()
    }
    for name in schema.fields:
        inner = schema.property(name)
        if name not in completed and inner is not None and inner.default is not ABSENT:
            completed[name] = with_defaults(inner.default, inner)
    return completed


def find_limit_faults(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    """Enums, bounds, sizes, patterns and unique items. Types must be right."""
    if value is None:
        return
    yield from _scalar_faults(value, schema, path)
    yield from _size_faults(value, schema, path)
    if isinstance(value, list):
        yield from _uniqueness_faults(value, schema, path)
    for part in find_parts(value, schema, path):
        yield from find_limit_faults(*part)


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


def find_rule_faults(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    """Rules in CEL, on a value that is complete and right otherwise."""
    if value is None:
        return
    for rule in schema.rules:
        if not cel.is_met(rule.expression, value):
            yield Cause("FieldValueInvalid", f"Invalid value: {rule.message}", path + rule.place)
    for part in find_parts(value, schema, path):
        yield from find_rule_faults(*part)
