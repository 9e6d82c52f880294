"""Every way a version changes state: one function per transition, by compare-and-swap, audited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.db import transaction

from deployments.domain import states
from deployments.domain.states import VersionState
from deployments.models import ModelVersion
from portal.accounts.policy import SYSTEM, Actor
from portal.audit import trail
from portal.audit.actions import AuditAction, register
from portal.core import clock
from portal.core.errors import Conflict
from portal.core.leases import Lease
from portal.core.wakeups import wake

VERIFY_TASK: Final = "deployments.verify_version"
VERIFY_WITHIN: Final = timedelta(hours=1)

UPLOADED = register("version.uploaded", "uploaded")
FAILED = register("version.failed", "failed")
ABANDONED = register("version.abandoned", "abandoned the upload of")
READY = register("version.ready", "verified")
QUARANTINED = register("version.quarantined", "quarantined")
ARCHIVED = register("version.archived", "archived")
RESTORED = register("version.restored", "restored")
RELEASED = register("version.released", "released from quarantine")


@dataclass(frozen=True, slots=True)
class _Move:
    """`fields` are written together with the state. A lease makes the move depend on holding it."""

    source: Sequence[VersionState]
    target: VersionState
    action: AuditAction
    fields: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    lease: Lease | None = None


def to_verifying(*, version: ModelVersion, actor: Actor, s3_version_id: str, size: int) -> None:
    at = clock.now()
    fields = {
        "s3_version_id": s3_version_id,
        "size_bytes": size,
        "upload_id": "",
        "deadline_at": at + VERIFY_WITHIN,
        "next_check_at": at,
    }
    _move(
        version,
        actor,
        _Move([VersionState.UPLOADING], VersionState.VERIFYING, UPLOADED, fields),
    )
    wake(VERIFY_TASK, version.pk)


def to_ready(*, version: ModelVersion, lease: Lease, facts: Mapping[str, Any]) -> None:
    """`facts` are what verification found of the bytes; from here on they are frozen."""
    fields = {**facts, "state_reason": "", "ready_at": clock.now(), "deadline_at": None}
    move = _Move([VersionState.VERIFYING], VersionState.READY, READY, fields, lease=lease)
    _move(version, SYSTEM, move)


def to_quarantined(
    *, version: ModelVersion, lease: Lease, facts: Mapping[str, Any], reason: str
) -> None:
    fields = {**facts, "state_reason": reason, "deadline_at": None}
    move = _Move(
        [VersionState.VERIFYING], VersionState.QUARANTINED, QUARANTINED, fields, reason, lease
    )
    _move(version, SYSTEM, move)


def to_failed(
    *,
    version: ModelVersion,
    reason: str,
    actor: Actor = SYSTEM,
    facts: Mapping[str, Any] | None = None,
    lease: Lease | None = None,
) -> None:
    """The bytes are removed by the next tick, which `next_check_at` makes due at once."""
    fields = {
        **(facts or {}),
        "state_reason": reason,
        "deadline_at": None,
        "next_check_at": clock.now(),
    }
    action = FAILED if actor is SYSTEM else ABANDONED
    source = [VersionState.UPLOADING, VersionState.VERIFYING]
    _move(version, actor, _Move(source, VersionState.FAILED, action, fields, reason, lease))
    wake(VERIFY_TASK, version.pk)


def to_archived(*, version: ModelVersion, actor: Actor, reason: str) -> None:
    source = [VersionState.READY, VersionState.QUARANTINED]
    move = _Move(source, VersionState.ARCHIVED, ARCHIVED, {"next_check_at": None}, reason)
    _move(version, actor, move)


def to_restored(*, version: ModelVersion, actor: Actor) -> None:
    """A released version's release goes on ending when it was going to end."""
    fields = {"next_check_at": version.deadline_at}
    _move(version, actor, _Move([VersionState.ARCHIVED], VersionState.READY, RESTORED, fields))


def to_released(*, version: ModelVersion, actor: Actor, reason: str, days: int) -> None:
    at = clock.now()
    ends_at = at + timedelta(days=days)
    fields = {"ready_at": at, "deadline_at": ends_at, "next_check_at": ends_at}
    move = _Move([VersionState.QUARANTINED], VersionState.READY, RELEASED, fields, reason)
    _move(version, actor, move)


def _move(version: ModelVersion, actor: Actor, move: _Move) -> None:
    """Raises Conflict, changing nothing, when the row is no longer where the caller saw it."""
    legal = [s for s in move.source if move.target in states.VERSION[s]]
    rows = ModelVersion.objects.filter(pk=version.pk, state=version.state, state__in=legal)
    if move.lease is not None:
        rows = rows.filter(lease_token=move.lease.token, lease_until__gt=clock.now())
    with transaction.atomic():
        changed = rows.update(state=move.target, **move.fields)
        if changed != 1:
            raise _conflict(version, move.target)
        trail.record(
            actor=actor,
            action=move.action,
            obj=version,
            label=version.label,
            team_slug=version.team.slug,
            before={"state": version.state},
            after={"state": str(move.target), **_told(move.fields)},
            reason=move.reason,
        )
    version.state = move.target
    for name, value in move.fields.items():
        setattr(version, name, value)


def _conflict(version: ModelVersion, target: VersionState) -> Conflict:
    state = ModelVersion.objects.filter(pk=version.pk).values_list("state", flat=True).first()
    return Conflict(
        f"{version.label} is {state or 'gone'} now, so it cannot become {target}. Load it again.",
        code="wrong_state",
    )


def _told(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What the trail keeps of the facts: the identity of the bytes and the end of a release."""
    kept = {k: fields[k] for k in ("sha256", "s3_version_id", "size_bytes") if fields.get(k)}
    if fields.get("deadline_at") and "ready_at" in fields:
        kept["until"] = fields["deadline_at"].isoformat()
    return kept
