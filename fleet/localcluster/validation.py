"""Validation of objects, with one cause per invalid field."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fleet.localcluster.errors import BadRequest, Cause, Invalid, JsonObject
from fleet.localcluster.kinds import HTTP_ROUTE, INFERENCE_SERVICE, NAMESPACE, SERVICE, Kind
from fleet.localcluster.pod_rules import find_pod_faults
from fleet.localcluster.schemas import ANYTHING, Schema, schema_of

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_FROM_LETTER = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_RULES = {
    NAMESPACE: (_LABEL, 63, "RFC 1123 label"),
    SERVICE: (_LABEL_FROM_LETTER, 63, "RFC 1035 label"),
    INFERENCE_SERVICE: (_LABEL_FROM_LETTER, 63, "RFC 1035 label"),
}
_MAXIMUM_WEIGHT = 1_000_000


@dataclass(frozen=True, slots=True)
class Checked:
    """An object without its unknown fields, and their paths."""

    obj: JsonObject
    unknown: tuple[str, ...]


def drop_unknown_fields(kind: Kind, obj: JsonObject, *, is_strict: bool) -> Checked:
    schema = schema_of(kind)
    if schema is ANYTHING:
        return Checked(obj, ())
    unknown: list[str] = []
    pruned = _prune(obj, schema, "", unknown)
    if unknown and is_strict:
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        error = BadRequest(f"strict decoding error: {listed}")
        error.causes = tuple(Cause("FieldValueInvalid", "unknown field", path) for path in unknown)
        raise error
    return Checked(pruned, tuple(unknown))


def _prune(value: Any, schema: Schema, path: str, unknown: list[str]) -> Any:
    if isinstance(value, dict):
        return _prune_object(value, schema, path, unknown)
    item = schema.item()
    if isinstance(value, list) and item is not None:
        return [
            _prune(child, item, f"{path}[{index}]", unknown) for index, child in enumerate(value)
        ]
    return value


def _prune_object(value: JsonObject, schema: Schema, path: str, unknown: list[str]) -> JsonObject:
    kept: JsonObject = {}
    for name, child in value.items():
        place = f"{path}.{name}" if path else name
        inner = schema.property(name) or schema.map_value()
        if inner is not None:
            kept[name] = _prune(child, inner, place, unknown)
        elif schema.is_open:
            kept[name] = child
        else:
            unknown.append(place)
    return kept


def require_valid(kind: Kind, obj: JsonObject) -> None:
    """Raise Invalid with all faults of the object."""
    faults = list(_metadata_faults(kind, obj["metadata"]))
    faults += _type_faults(obj, schema_of(kind), "")
    if not faults:
        # The rules below rely on the types being right.
        faults += find_pod_faults(kind, obj)
        faults += _kind_faults(kind, obj)
    if faults:
        raise invalid(kind, obj["metadata"].get("name", ""), faults)


def invalid(kind: Kind, name: str, faults: list[Cause]) -> Invalid:
    details = [f"{fault.field}: {fault.message}" for fault in faults]
    listed = details[0] if len(details) == 1 else f"[{', '.join(details)}]"
    group = f".{kind.group}" if kind.group else ""
    return Invalid(
        f'{kind.kind}{group} "{name}" is invalid: {listed}',
        details={"name": name, "group": kind.group, "kind": kind.kind},
        causes=faults,
    )


def _metadata_faults(kind: Kind, metadata: JsonObject) -> Iterator[Cause]:
    name = metadata.get("name", "")
    pattern, limit, what = _RULES.get(kind, (_SUBDOMAIN, 253, "RFC 1123 subdomain"))
    if not isinstance(name, str) or not pattern.fullmatch(name) or len(name) > limit:
        yield Cause(
            "FieldValueInvalid",
            f'Invalid value: "{name}": must be a lowercase {what} of at most {limit} characters '
            f"(regex used for validation is '{pattern.pattern}')",
            "metadata.name",
        )
    for field in ("labels", "annotations"):
        values = metadata.get(field) or {}
        if not isinstance(values, dict):
            yield Cause("FieldValueTypeInvalid", "must be an object", f"metadata.{field}")
            continue
        yield from _map_faults(field, values)


def _map_faults(field: str, values: Mapping[str, Any]) -> Iterator[Cause]:
    for key, value in values.items():
        prefix, _, name = key.rpartition("/")
        is_valid_key = _LABEL_NAME.fullmatch(name) and (
            "/" not in key or (_SUBDOMAIN.fullmatch(prefix) and len(prefix) <= 253)
        )
        is_valid_value = isinstance(value, str) and (
            field != "labels" or _LABEL_VALUE.fullmatch(value)
        )
        if not is_valid_key:
            yield Cause(
                "FieldValueInvalid", f'Invalid value: "{key}": bad name', f"metadata.{field}"
            )
        if not is_valid_value:
            yield Cause(
                "FieldValueInvalid",
                f'Invalid value: "{value}": must be a string of at most 63 characters of '
                "letters, digits, '-', '_' or '.'",
                f"metadata.{field}.{key}",
            )


def _type_faults(value: Any, schema: Schema, path: str) -> list[Cause]:
    if value is None:
        return []
    actual = _json_type(value)
    if schema.types and actual not in schema.types:
        allowed = " or ".join(sorted(schema.types))
        return [
            Cause("FieldValueTypeInvalid", f"must be {allowed}, not {actual}", path or "object")
        ]
    if isinstance(value, dict):
        return _object_faults(value, schema, path)
    if isinstance(value, list):
        item = schema.item()
        if item is None:
            return []
        return [
            fault
            for index, child in enumerate(value)
            for fault in _type_faults(child, item, f"{path}[{index}]")
        ]
    return list(_scalar_faults(value, schema, path))


def _object_faults(value: JsonObject, schema: Schema, path: str) -> list[Cause]:
    dot = f"{path}." if path else ""
    faults = [
        Cause("FieldValueRequired", "Required value", f"{dot}{name}")
        for name in schema.required
        if value.get(name) is None and path != "status" and not path.startswith("status.")
    ]
    for name, child in value.items():
        inner = schema.property(name) or schema.map_value()
        if inner is not None:
            faults += _type_faults(child, inner, f"{dot}{name}")
    return faults


def _scalar_faults(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    if schema.enum and value not in schema.enum:
        allowed = ", ".join(f'"{item}"' for item in schema.enum)
        yield Cause(
            "FieldValueNotSupported",
            f'Unsupported value: "{value}": supported values: {allowed}',
            path,
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        if schema.minimum is not None and value < schema.minimum:
            yield Cause("FieldValueInvalid", f"Invalid value: {value}: below the minimum", path)
        if schema.maximum is not None and value > schema.maximum:
            yield Cause("FieldValueInvalid", f"Invalid value: {value}: above the maximum", path)


def _json_type(value: Any) -> str:
    # bool before int: in Python True is an int.
    names = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
    for python_type, name in names:
        if isinstance(value, python_type):
            return name
    return "array" if isinstance(value, list) else "object"


def _kind_faults(kind: Kind, obj: JsonObject) -> Iterator[Cause]:
    if kind is INFERENCE_SERVICE:
        yield from _inference_service_faults(obj)
    elif kind is HTTP_ROUTE:
        yield from _route_faults(obj)


def _inference_service_faults(obj: JsonObject) -> Iterator[Cause]:
    spec = obj.get("spec")
    predictor = spec.get("predictor") if isinstance(spec, dict) else None
    if not isinstance(predictor, dict):
        yield Cause("FieldValueRequired", "Required value", "spec.predictor")
        return
    for field in ("minReplicas", "maxReplicas"):
        value = predictor.get(field)
        if value is not None and (_json_type(value) != "integer" or value < 0):
            message = f"Invalid value: {value!r}: must be a whole number, not negative"
            yield Cause("FieldValueInvalid", message, f"spec.predictor.{field}")
    model = predictor.get("model")
    if isinstance(model, dict) and not (model.get("modelFormat") or {}).get("name"):
        yield Cause("FieldValueRequired", "Required value", "spec.predictor.model.modelFormat.name")


def _route_faults(obj: JsonObject) -> Iterator[Cause]:
    for index, rule in enumerate((obj.get("spec") or {}).get("rules") or []):
        for position, backend in enumerate(rule.get("backendRefs") or []):
            path = f"spec.rules[{index}].backendRefs[{position}]"
            weight = backend.get("weight", 1)
            if _json_type(weight) != "integer" or not 0 <= weight <= _MAXIMUM_WEIGHT:
                message = f"Invalid value: {weight!r}: must be 0 to {_MAXIMUM_WEIGHT}"
                yield Cause("FieldValueInvalid", message, f"{path}.weight")
            if not backend.get("name"):
                yield Cause("FieldValueRequired", "Required value", f"{path}.name")
