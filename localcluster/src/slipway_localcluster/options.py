"""Options of writes, in the query of a request or, for deletions, in its body."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from slipway_localcluster import bodies
from slipway_localcluster.errors import BadRequest, Cause, Invalid, JsonObject
from slipway_localcluster.requests import media_type
from slipway_localcluster.rules.causes import (
    forbidden,
    invalid,
    report_required,
    report_unsupported,
)
from slipway_localcluster.writes import WriteOptions

Query = Mapping[str, str]

_VALIDATIONS = ("Strict", "Warn", "Ignore")
_PROPAGATIONS = ("Background", "Foreground", "Orphan")
_LONGEST_MANAGER = 128
_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


def write_options(query: Query, headers: Mapping[str, str], *, method: str) -> WriteOptions:
    """Raises Invalid."""
    user_agent = headers.get("user-agent", "")
    is_delete = method == "DELETE"
    faults = list(_dry_run_faults(query.get("dryRun", "")))
    if not is_delete:
        faults += _write_faults(query)
    if method == "PATCH":
        faults += _patch_faults(query, is_apply=media_type(headers) == bodies.APPLY)
    _require(_OPTIONS.get(method, "DeleteOptions"), faults)
    return WriteOptions(
        manager=query.get("fieldManager") or user_agent.partition("/")[0] or "unknown",
        validation=query.get("fieldValidation") or "Warn",
        is_dry_run=bool(query.get("dryRun")),
        is_forced=query.get("force") in ("true", "1"),
        propagation=query.get("propagationPolicy") or "Background",
        grace_period_seconds=_seconds("gracePeriodSeconds", query.get("gracePeriodSeconds")),
    )


def delete_options(options: WriteOptions, body: JsonObject) -> WriteOptions:
    """Read the options of a DELETE from its body or the query. Raises Invalid."""
    preconditions = body.get("preconditions") or {}
    propagation = body.get("propagationPolicy") or options.propagation
    _require("DeleteOptions", list(_propagation_faults(propagation, body)))
    return replace(
        options,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        is_dry_run=options.is_dry_run or "All" in (body.get("dryRun") or ()),
        propagation=propagation,
        grace_period_seconds=_seconds(
            "gracePeriodSeconds", body.get("gracePeriodSeconds", options.grace_period_seconds)
        ),
    )


def _require(name: str, faults: list[Cause]) -> None:
    if faults:
        listed = "; ".join(f"{fault.field}: {fault.message}" for fault in faults)
        details = {"group": "meta.k8s.io", "kind": name}
        raise Invalid(f'{name}.meta.k8s.io "" is invalid: {listed}', details=details, causes=faults)


def _dry_run_faults(dry_run: str) -> Iterator[Cause]:
    if dry_run not in ("", "All"):
        yield report_unsupported("dryRun", [dry_run], ["All"])


def _write_faults(query: Query) -> Iterator[Cause]:
    validation, manager = query.get("fieldValidation") or "Warn", query.get("fieldManager", "")
    if validation not in _VALIDATIONS:
        yield report_unsupported("fieldValidation", validation, _VALIDATIONS)
    if len(manager) > _LONGEST_MANAGER:
        detail = f"may not be more than {_LONGEST_MANAGER} bytes"
        yield Cause("FieldValueTooLong", f"Too long: {detail}", "fieldManager")
    if not manager.isprintable():
        yield invalid("fieldManager", manager, "should only contain printable characters")


def _patch_faults(query: Query, *, is_apply: bool) -> Iterator[Cause]:
    if is_apply and not query.get("fieldManager"):
        yield report_required("fieldManager", "is required for apply patch")
    if not is_apply and "force" in query:
        yield forbidden("force", "may not be specified for non-apply patch")


def _propagation_faults(propagation: str, body: JsonObject) -> Iterator[Cause]:
    if propagation not in _PROPAGATIONS:
        yield report_unsupported("propagationPolicy", propagation, _PROPAGATIONS)
    if body.get("propagationPolicy") and body.get("orphanDependents") is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        yield invalid("propagationPolicy", propagation, detail)


def _seconds(field: str, value: Any) -> int | None:
    """Parse seconds. A negative number counts as one second."""
    if value is None or value == "":
        return None
    text = str(value)
    if isinstance(value, bool) or not text.removeprefix("-").isdigit():
        raise BadRequest(f"{field}: not a number of seconds: {value}")
    return max(int(text), 1) if text.startswith("-") else int(text)
