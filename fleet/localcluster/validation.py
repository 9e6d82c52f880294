"""Validation of objects, with one cause per invalid field."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fleet.localcluster.decoding import invalid, undecodable
from fleet.localcluster.errors import ApiError, Cause, Forbidden, JsonObject
from fleet.localcluster.kinds import INFERENCE_SERVICE, NAMESPACE, SERVICE, Kind
from fleet.localcluster.rules import kserve
from fleet.localcluster.rules.formats import (
    LABEL,
    SUBDOMAIN,
    find_label_faults,
    is_qualified_name,
)
from fleet.localcluster.rules.registry import FIND_FAULTS
from fleet.localcluster.schemas.kserve import inference_service_spec
from fleet.localcluster.schemas.lookup import schema_of
from fleet.localcluster.schemas.schema import ANYTHING, Schema
from fleet.localcluster.schemas.values import (
    FORM_FAULTS,
    find_form_faults,
    find_limit_faults,
    find_missing,
    find_rule_faults,
    prune,
    with_defaults,
)
from fleet.localcluster.topology import NATIVE_GROUPS

_NAMES: dict[Kind, tuple[re.Pattern[str], int, str]] = {
    NAMESPACE: (LABEL, 63, "RFC 1123 label"),
    SERVICE: (LABEL, 63, "RFC 1123 label"),
}
_WEBHOOK = "inferenceservice.kserve-webhook-server"


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
    pruned = prune(obj, schema, "", unknown)
    if unknown and is_strict:
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise undecodable(kind, f"strict decoding error: {listed}")
    return Checked(pruned, tuple(unknown))


def require_valid(kind: Kind, obj: JsonObject) -> None:
    """Raise Invalid with all faults of the object, whose types have been checked."""
    if kind is INFERENCE_SERVICE:
        _require_admitted(obj)
    faults = list(_metadata_faults(kind, obj["metadata"]))
    schema = schema_of(kind)
    if kind.group in NATIVE_GROUPS:
        faults += FIND_FAULTS[kind](obj) if kind in FIND_FAULTS else ()
        # Kubernetes completes absent fields before it checks them, so its rules come first.
        faults = faults or _missing_faults(obj, schema)
    else:
        admitted = kserve.written_back(obj) if kind is INFERENCE_SERVICE else obj
        faults += _custom_faults(admitted, schema)
    if faults:
        raise invalid(kind, obj["metadata"].get("name", ""), faults)


def _custom_faults(obj: JsonObject, schema: Schema) -> list[Cause]:
    completed = with_defaults(obj, schema)
    faults = _missing_faults(completed, schema)
    for field in schema.fields:
        part = schema.property(field)
        if field != "status" and part is not None:
            faults += find_limit_faults(completed.get(field), part, field)
    # As on a real server: rules may rely on the rest of the schema.
    return faults or list(find_rule_faults(completed, schema, ""))


def _missing_faults(obj: Any, schema: Schema) -> list[Cause]:
    paths = find_missing(obj, schema, "")
    return [Cause("FieldValueRequired", "Required value", path) for path in paths]


def _require_admitted(obj: JsonObject) -> None:
    """What KServe's webhooks refuse: of values that they cannot read 400, else 403."""
    spec = inference_service_spec()
    for _, form in find_form_faults(obj.get("spec"), spec, "spec"):
        prefix = f'admission webhook "{_WEBHOOK}.defaulter" denied the request: '
        raise ApiError(400, "", prefix + FORM_FAULTS[form])
    for refusal in kserve.find_refusals(obj):
        prefix = f'admission webhook "{_WEBHOOK}.validator" denied the request: '
        raise Forbidden(prefix + refusal)


def _metadata_faults(kind: Kind, metadata: JsonObject) -> Iterator[Cause]:
    name = metadata.get("name", "")
    pattern, limit, what = _NAMES.get(kind, (SUBDOMAIN, 253, "RFC 1123 subdomain"))
    if not pattern.fullmatch(name) or len(name) > limit:
        yield Cause(
            "FieldValueInvalid",
            f'Invalid value: "{name}": must be a lowercase {what} of at most {limit} characters '
            f"(regex used for validation is '{pattern.pattern}')",
            "metadata.name",
        )
    yield from find_label_faults("metadata.labels", metadata.get("labels"))
    for key in metadata.get("annotations") or ():
        if not is_qualified_name(key.lower()):
            message = f'Invalid value: "{key}": must be a qualified name'
            yield Cause("FieldValueInvalid", message, "metadata.annotations")
