"""The state transitions of an import: one function each, by compare-and-swap, audited."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from deployments import states
from deployments.models import Import
from deployments.states import ImportState
from portal.accounts.policy import SYSTEM, Actor
from portal.audit import trail
from portal.audit.actions import AuditAction, register
from portal.core import clock
from portal.core.errors import Conflict
from portal.core.leases import Lease
from portal.core.wakeups import wake

IMPORT_TASK: Final = "deployments.advance_import"
_CHECK_FAILED_EVERY: Final = timedelta(hours=1)
FAILED = register("import.failed", "could not finish the import of")
CANCELED = register("import.canceled", "canceled the import of")
RESUMED = register("import.resumed", "resumed the import of")
DONE = register("import.done", "finished the import of")


def to_failed(job: Import, lease: Lease, *, error: str, is_outdated: bool) -> None:
    """Mark the import as failed. It can be resumed until its version expires, so the address is kept until then."""
    fields = {"error": error, "is_outdated": is_outdated, "next_check_at": expiry_of(job)}
    _apply(job, ImportState.FAILED, SYSTEM, FAILED, fields, lease=lease)


def expiry_of(job: Import) -> datetime:
    """Return when to check whether the version of a failed import has expired."""
    soonest = clock.now() + _CHECK_FAILED_EVERY
    return max(job.version.deadline_at or soonest, soonest)


def to_running(job: Import, *, actor: Actor) -> None:
    fields = {"error": "", "check_failures": 0, "next_check_at": clock.now()}
    _apply(job, ImportState.RUNNING, actor, RESUMED, fields)
    wake(IMPORT_TASK, job.pk)


def to_canceled(job: Import, *, actor: Actor, error: str) -> None:
    """Cancel the import. A worker that copies it loses its lease, so that it stops before it writes again."""
    fields = {**_ended(), "error": error, "lease_token": "", "lease_until": None}
    _apply(job, ImportState.CANCELED, actor, CANCELED, fields)


def to_done(job: Import, *, copied_bytes: int) -> None:
    fields = {**_ended(), "error": "", "copied_bytes": copied_bytes}
    _apply(job, ImportState.DONE, SYSTEM, DONE, fields)


def _ended() -> dict[str, Any]:
    return {"sealed_url": "", "ended_at": clock.now(), "next_check_at": None}


def _apply(
    job: Import,
    target: ImportState,
    actor: Actor,
    action: AuditAction,
    fields: Mapping[str, Any],
    *,
    lease: Lease | None = None,
) -> None:
    """Move the import to a state. Raises Conflict, without a change, if it is in a state without this
    transition.
    """
    sources = [state for state, targets in states.IMPORT.items() if target in targets]
    rows = Import.objects.filter(pk=job.pk, state__in=sources)
    if lease is not None:
        rows = rows.filter(lease_token=lease.token)
    with transaction.atomic():
        if rows.update(state=target, **fields) == 0:
            state = Import.objects.filter(pk=job.pk).values_list("state", flat=True).first()
            raise Conflict(
                f"The import of {job.version.label} is {state or 'gone'} now and cannot become "
                f"{target}. Reload and try again.",
                code="wrong_state",
            )
        trail.record(
            actor=actor,
            action=action,
            obj=job.version,
            label=job.version.label,
            team_slug=job.version.team.slug,
            before={"state": job.state},
            after={"state": str(target), "address": job.address, "pin": job.pin},
            reason=str(fields.get("error", "")),
        )
    job.state = target
    for name, value in fields.items():
        setattr(job, name, value)
