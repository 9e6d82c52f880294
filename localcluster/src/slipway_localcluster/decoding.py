"""Refusals of objects that do not fit the types of their kind, as a real API server words them.

Server-side apply is refused with 500 and no reason, other writes of built-in kinds with 400. Other
writes of custom kinds get to the validation, which names the fields.
"""

from collections.abc import Iterator
from typing import Any

from slipway_localcluster.errors import ApiError, BadRequest, Cause, Invalid, JsonObject
from slipway_localcluster.kinds import Kind
from slipway_localcluster.managed_fields import as_field, key_element
from slipway_localcluster.schemas.schema import Schema
from slipway_localcluster.schemas.values import (
    FORM_FAULTS,
    Part,
    find_form_faults,
    find_parts,
    find_type_faults,
    has_type,
    json_type,
)
from slipway_localcluster.topology import NATIVE_GROUPS, Topology

_EXPECTED = {
    "array": "list",
    "boolean": "boolean",
    "integer": "numeric (int or float)",
    "number": "numeric (int or float)",
    "object": "map",
    "string": "string",
}
_GO_TYPES = {"array": "slice", "boolean": "bool", "integer": "int32", "number": "float64"}


def require_applicable(kind: Kind, obj: JsonObject, schema: Schema) -> None:
    """Require that an object can be applied. Raises ApiError with status 500."""
    reference = _reference(kind, obj)
    faults = list(_typed_faults(obj, schema, (), (), Topology(kind)))
    if faults:
        listed = faults[0] if len(faults) == 1 else "errors:\n  " + "\n  ".join(faults)
        raise ApiError(500, "", f"failed to create typed patch object ({reference}): {listed}")
    if kind.group in NATIVE_GROUPS:
        for form in find_form_faults(find_parts(obj, schema, "")):
            version = _reference(kind, None)
            raise ApiError(
                500,
                "",
                f"failed to convert new object ({reference}) to proper version: unable to convert "
                f"unstructured object to {version}: {FORM_FAULTS[form]}",
            )


def require_decodable(kind: Kind, obj: JsonObject, schema: Schema) -> None:
    """Require that an object that is sent whole can be decoded. Raises BadRequest, or Invalid for a custom kind."""
    parts = find_parts(obj, schema, "")
    type_faults = find_type_faults(parts)
    if kind.group not in NATIVE_GROUPS:
        if any(path.startswith("metadata.") for *_, path in type_faults):
            raise undecodable(kind, "json: cannot unmarshal a value of ObjectMeta")
        if type_faults:
            raise _invalid_types(kind, obj, type_faults)
        return
    for value, expected, path in type_faults:
        sent, (name, *_) = json_type(value), sorted(expected.types)
        go_type = _GO_TYPES.get(name, name)
        raise undecodable(
            kind,
            f"json: cannot unmarshal {sent} into Go struct field {path} of type {go_type}",
        )
    for form in find_form_faults(parts):
        raise undecodable(kind, FORM_FAULTS[form])


def undecodable(kind: Kind, message: str) -> BadRequest:
    return BadRequest(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {message}'
    )


def _invalid_types(kind: Kind, obj: JsonObject, faults: list[Part]) -> Invalid:
    causes = [
        Cause(
            "FieldValueTypeInvalid",
            f"must be {' or '.join(sorted(schema.types))}, not {json_type(value)}",
            path or "object",
        )
        for value, schema, path in faults
    ]
    return invalid(kind, obj["metadata"].get("name", ""), causes)


def invalid(kind: Kind, name: str, faults: list[Cause]) -> Invalid:
    details = [f"{fault.field}: {fault.message}" for fault in faults]
    listed = details[0] if len(details) == 1 else f"[{', '.join(details)}]"
    group = f".{kind.group}" if kind.group else ""
    return Invalid(
        f'{kind.kind}{group} "{name}" is invalid: {listed}',
        details={"name": name, "group": kind.group, "kind": kind.kind},
        causes=faults,
    )


def _reference(kind: Kind, obj: JsonObject | None) -> str:
    version = f"{kind.group}/{kind.version}, Kind={kind.kind}"
    if obj is None:
        return version
    metadata = obj["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {version}"


def _typed_faults(
    value: Any, schema: Schema, path: tuple[str, ...], names: tuple[str, ...], topology: Topology
) -> Iterator[str]:
    """`path` has the keys of list elements, `names` only the fields."""
    if not has_type(value, schema) and not _is_number(value, schema):
        expected = _EXPECTED[min(schema.types)]
        yield f"{as_field(path)}: expected {expected}, got {json_type(value)}"
    elif isinstance(value, dict):
        for name, child in value.items():
            inner = schema.part_named(name)
            here = (*path, f"f:{name}")
            if inner is not None:
                yield from _typed_faults(child, inner, here, (*names, name), topology)
            elif not schema.is_open:
                yield f"{as_field(here)}: field not declared in schema"
    elif isinstance(value, list):
        yield from _typed_list_faults(value, schema, path, names, topology)


def _typed_list_faults(
    items: list[Any],
    schema: Schema,
    path: tuple[str, ...],
    names: tuple[str, ...],
    topology: Topology,
) -> Iterator[str]:
    keys = topology.list_keys(names) or schema.list_keys
    elements: set[str] = set()
    inner = schema.item()
    for index, item in enumerate(items):
        element = f"i:{index}"
        if keys and isinstance(item, dict):
            element = key_element(item, keys, names)
            if element in elements:
                shown = as_field((element,))
                yield f"{as_field(path)}: duplicate entries for key {shown}"
            elements.add(element)
        if inner is not None:
            yield from _typed_faults(item, inner, (*path, element), names, topology)


def _is_number(value: Any, schema: Schema) -> bool:
    """Fractions are numbers, too; that a field takes whole ones only is found later."""
    return json_type(value) == "number" and "integer" in schema.types
