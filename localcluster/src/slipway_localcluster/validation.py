"""Validation of objects, with one cause per invalid field."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from slipway_localcluster.decoding import invalid, require_decodable, undecodable
from slipway_localcluster.errors import ApiError, BadRequest, Cause, Forbidden, JsonObject
from slipway_localcluster.kinds import INFERENCE_SERVICE, NAMESPACE, SERVICE, Kind
from slipway_localcluster.rules import kserve
from slipway_localcluster.rules.changes import find_change_faults
from slipway_localcluster.rules.formats import LABEL, SUBDOMAIN
from slipway_localcluster.rules.object_metadata import find_metadata_changes, find_metadata_faults
from slipway_localcluster.rules.registry import FIND_FAULTS
from slipway_localcluster.rules.statuses import find_status_faults
from slipway_localcluster.schemas.kserve import inference_service_spec
from slipway_localcluster.schemas.lookup import schema_of
from slipway_localcluster.schemas.schema import ANYTHING, Schema
from slipway_localcluster.schemas.values import (
    FORM_FAULTS,
    Part,
    find_form_faults,
    find_limit_faults,
    find_missing,
    find_parts,
    find_rule_faults,
    prune,
    with_defaults,
)
from slipway_localcluster.topology import NATIVE_GROUPS

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
    # Its rules are more exact than the schema's.
    obj = {**obj, "metadata": {**obj["metadata"], "ownerReferences": None}}
    schema = schema_of(kind)
    if kind.group in NATIVE_GROUPS:
        faults += FIND_FAULTS[kind](obj) if kind in FIND_FAULTS else ()
        # Kubernetes completes absent fields before it checks them, so its rules come first.
        faults = faults or _missing_faults(_without_status(find_parts(obj, schema, "")))
    else:
        admitted = kserve.written_back(obj) if kind is INFERENCE_SERVICE else obj
        faults += _custom_faults(admitted, schema)
    if faults:
        raise invalid(kind, obj["metadata"].get("name", ""), faults)


def _custom_faults(obj: JsonObject, schema: Schema) -> list[Cause]:
    parts = find_parts(with_defaults(obj, schema), schema, "")
    judged = _without_status(parts)
    # As on a real server: rules may rely on the rest of the schema.
    return [*_missing_faults(judged), *find_limit_faults(judged)] or list(find_rule_faults(parts))


def _missing_faults(parts: Iterable[Part]) -> list[Cause]:
    missing = find_missing(parts)
    return [Cause("FieldValueRequired", "Required value", path) for path in missing]


def _without_status(parts: Iterable[Part]) -> list[Part]:
    """Drop the status, which may be incomplete."""
    return [part for part in parts if part[2] != "status" and not part[2].startswith("status.")]


def _require_admitted(obj: JsonObject) -> None:
    """Require that KServe's webhooks admit an object. Raises ApiError with status 400 for values that they cannot
    read, else Forbidden.
    """
    spec = inference_service_spec()
    for form in find_form_faults(find_parts(obj.get("spec"), spec, "spec")):
        prefix = f'admission webhook "{_WEBHOOK}.defaulter" denied the request: '
        raise ApiError(400, "", prefix + FORM_FAULTS[form])
    for refusal in kserve.find_refusals(obj):
        prefix = f'admission webhook "{_WEBHOOK}.validator" denied the request: '
        raise Forbidden(prefix + refusal)


def require_readable_patch(kind: Kind, patched: JsonObject) -> None:
    """Raise Invalid for the result of a patch that is no object of its kind."""
    problem = ""
    if (patched.get("apiVersion"), patched.get("kind")) != (kind.api_version, kind.kind):
        problem = f"no kind {patched.get('kind')!r} is registered for this resource"
    elif kind.group in NATIVE_GROUPS:
        try:
            require_decodable(kind, patched, schema_of(kind))
        except BadRequest as error:
            problem = error.message
    if problem:
        name = str(patched["metadata"].get("name", ""))
        raise invalid(kind, name, [Cause("FieldValueInvalid", problem, "patch")])


def require_valid_change(kind: Kind, live: JsonObject, obj: JsonObject) -> None:
    """Raise Invalid with what may not change; the object is valid otherwise."""
    faults = [
        *find_metadata_changes(live["metadata"], obj["metadata"]),
        *find_change_faults(kind, live, obj),
    ]
    if faults:
        raise invalid(kind, obj["metadata"].get("name", ""), faults)


def require_valid_status(kind: Kind, obj: JsonObject) -> None:
    """Raise Invalid with all faults of the status, whose types have been checked."""
    if kind.group in NATIVE_GROUPS:
        faults = list(find_status_faults(kind, obj))
    else:
        whole = with_defaults({"status": obj.get("status")}, schema_of(kind))
        parts = [part for part in find_parts(whole, schema_of(kind), "") if part[2]]
        faults = [*_missing_faults(parts), *find_limit_faults(parts)] or list(
            find_rule_faults(parts)
        )
    if faults:
        raise invalid(kind, obj["metadata"].get("name", ""), faults)


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
    yield from find_metadata_faults(kind, metadata)
