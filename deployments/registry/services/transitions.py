"""The state transitions of a version: one function each, by compare-and-swap, audited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.db import transaction

from deployments import states
from deployments.models import ModelVersion
from deployments.registry.domain.scanning import releases
from deployments.registry.domain.scanning.releases import Release
from deployments.registry.domain.verification_steps import FormerVerification
from deployments.states import VersionState
from portal.accounts.policy import SYSTEM, Actor
from portal.audit import trail
from portal.audit.actions import AuditAction, register
from portal.core import clock
from portal.core.errors import Conflict
from portal.core.leases import Lease
from portal.core.wakeups import wake

VERIFY_TASK: Final = "deployments.verify_version"
VERIFY_WITHIN: Final = timedelta(hours=1)
# Of reading each file twice from the store.
_SLOWEST_BYTES_PER_SECOND: Final = 20 * 2**20
AS_BEFORE: Final = "The version is as it was before, with its former declaration."

UPLOADED = register("version.uploaded", "uploaded")
FAILED = register("version.failed", "failed")
ABANDONED = register("version.abandoned", "canceled the upload of")
STOPPED = register("version.stopped", "stopped the verification of")
READY = register("version.ready", "verified")
KEPT = register("version.kept", "kept the former verification of")
DECLARED = register("version.declared", "declared the batching and sizes of")
QUARANTINED = register("version.quarantined", "quarantined")
ARCHIVED = register("version.archived", "archived")
RESTORED = register("version.restored", "restored")
RELEASED = register("version.released", "released from quarantine")


@dataclass(frozen=True, slots=True)
class _Transition:
    """A transition of a version. `fields` are written together with the state. With a `lease`, the worker must
    still hold it.
    """

    source: Sequence[VersionState]
    target: VersionState
    action: AuditAction
    fields: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    lease: Lease | None = None


def verify_within(size_bytes: int) -> timedelta:
    """Return how long the verification of so many bytes may take."""
    return VERIFY_WITHIN + timedelta(seconds=size_bytes / _SLOWEST_BYTES_PER_SECOND)


def to_verifying(*, version: ModelVersion, actor: Actor) -> None:
    """Move a version to verifying. All its files are stored."""
    at = clock.now()
    fields = {
        "size_bytes": version.declared_size_bytes,
        "deadline_at": at + verify_within(version.declared_size_bytes),
        "next_check_at": at,
    }
    _apply(
        version,
        actor,
        _Transition([VersionState.UPLOADING], VersionState.VERIFYING, UPLOADED, fields),
    )
    wake(VERIFY_TASK, version.pk)


def to_ready(*, version: ModelVersion, lease: Lease, facts: Mapping[str, Any]) -> None:
    """Move a version to ready. `facts` are the verified facts about the bytes, frozen from now on. A release
    that made the verification continue sets the end.
    """
    release = releases.from_json(version.release)
    fields = {
        **facts,
        "state_reason": "",
        "ready_at": clock.now(),
        "deadline_at": None if release is None else release.until,
        "former": {},
    }
    transition = _Transition(
        [VersionState.VERIFYING], VersionState.READY, READY, fields, lease=lease
    )
    _apply(version, SYSTEM, transition)


def to_declared(*, version: ModelVersion, actor: Actor, declared: Mapping[str, Any]) -> None:
    """Verify the version again with the declaration. `former` keeps its previous values."""
    at = clock.now()
    former = FormerVerification(version.declared, version.checks, version.ready_at)
    fields: dict[str, Any] = {
        "declared": dict(declared),
        "former": former.to_json(),
        "checks": [],
        "state_reason": "",
        "examination_deaths": 0,
        "ready_at": None,
        "deadline_at": at + verify_within(version.size_bytes or 0),
        "next_check_at": at,
    }
    if version.state == VersionState.QUARANTINED:
        # It was never ready: there is nothing to return to.
        fields["former"] = {}
    source = [VersionState.READY, VersionState.QUARANTINED]
    transition = _Transition(source, VersionState.VERIFYING, DECLARED, fields)
    _apply(version, actor, transition)
    wake(VERIFY_TASK, version.pk)


def to_ready_again(
    *, version: ModelVersion, reason: str, actor: Actor = SYSTEM, lease: Lease | None = None
) -> None:
    """Restore the previous values after a second verification without a verdict.

    A worker that still examines the version loses its lease, so that it cannot overwrite a later
    declaration.
    """
    with transaction.atomic():
        row = ModelVersion.objects.select_for_update().get(pk=version.pk)
        if not row.former:
            raise _conflict(version, VersionState.READY)
        former = FormerVerification.from_json(row.former)
        fields = {
            "declared": former.declared,
            "checks": former.checks,
            "ready_at": former.ready_at,
            "former": {},
            "state_reason": reason,
            "examination_deaths": 0,
            "deadline_at": None,
            "next_check_at": None,
            "lease_token": "",
            "lease_until": None,
            "check_failures": 0,
        }
        action = KEPT if actor is SYSTEM else STOPPED
        source = [VersionState.VERIFYING]
        _apply(
            version, actor, _Transition(source, VersionState.READY, action, fields, reason, lease)
        )


def to_quarantined(
    *,
    version: ModelVersion,
    facts: Mapping[str, Any],
    reason: str,
    actor: Actor = SYSTEM,
    lease: Lease | None = None,
) -> None:
    """Move a version to quarantine. Its bytes stay. A release that it had is over."""
    fields = {**facts, "state_reason": reason, "deadline_at": None, "former": {}, "release": {}}
    transition = _Transition(
        [VersionState.VERIFYING, VersionState.READY],
        VersionState.QUARANTINED,
        QUARANTINED,
        fields,
        reason,
        lease,
    )
    _apply(version, actor, transition)


def to_failed(
    *,
    version: ModelVersion,
    reason: str,
    actor: Actor = SYSTEM,
    facts: Mapping[str, Any] | None = None,
    lease: Lease | None = None,
) -> None:
    """Move a version to failed. The next pass, due at once, deletes the bytes. A version that was ready before
    never fails: `former` and `release` must be empty.
    """
    fields = {
        **(facts or {}),
        "state_reason": reason,
        "deadline_at": None,
        "next_check_at": clock.now(),
    }
    by_person = ABANDONED if version.state == VersionState.UPLOADING else STOPPED
    action = FAILED if actor is SYSTEM else by_person
    source = [VersionState.UPLOADING, VersionState.VERIFYING]
    _apply(version, actor, _Transition(source, VersionState.FAILED, action, fields, reason, lease))
    wake(VERIFY_TASK, version.pk)


def to_archived(*, version: ModelVersion, actor: Actor, reason: str) -> None:
    source = [VersionState.READY, VersionState.QUARANTINED]
    transition = _Transition(
        source, VersionState.ARCHIVED, ARCHIVED, {"next_check_at": None}, reason
    )
    _apply(version, actor, transition)


def to_restored(*, version: ModelVersion, actor: Actor) -> None:
    """Move an archived version back to ready. A release from quarantine keeps its end."""
    fields = {"next_check_at": version.deadline_at}
    _apply(
        version, actor, _Transition([VersionState.ARCHIVED], VersionState.READY, RESTORED, fields)
    )


def to_released(*, version: ModelVersion, actor: Actor, release: Release) -> None:
    """Release a version from quarantine. One with a serving repository is ready. Others continue their
    verification, and are ready until the same end if an engine serves them.
    """
    at = clock.now()
    if version.repository_prefix:
        target = VersionState.READY
        fields: dict[str, Any] = {"ready_at": at, "deadline_at": release.until}
        fields["next_check_at"] = release.until
    else:
        target = VersionState.VERIFYING
        deadline_at = at + verify_within(version.size_bytes or 0)
        fields = {"checks": [], "examination_deaths": 0, "deadline_at": deadline_at}
        fields |= {"state_reason": "", "next_check_at": at}
    fields["release"] = release.to_json()
    transition = _Transition([VersionState.QUARANTINED], target, RELEASED, fields, release.reason)
    _apply(version, actor, transition)
    if target is VersionState.VERIFYING:
        wake(VERIFY_TASK, version.pk)


def _apply(version: ModelVersion, actor: Actor, transition: _Transition) -> None:
    """Move a version to another state. Raises Conflict, without a change, if the row is not in the state that
    the caller read.
    """
    legal = [s for s in transition.source if transition.target in states.VERSION[s]]
    rows = ModelVersion.objects.filter(pk=version.pk, state=version.state, state__in=legal)
    if transition.target == VersionState.FAILED:
        rows = rows.filter(former={}, release={})
    if transition.lease is not None:
        rows = rows.filter(lease_token=transition.lease.token, lease_until__gt=clock.now())
    with transaction.atomic():
        changed = rows.update(state=transition.target, **transition.fields)
        if changed != 1:
            raise _conflict(version, transition.target)
        trail.record(
            actor=actor,
            action=transition.action,
            obj=version,
            label=version.label,
            team_slug=version.team.slug,
            before={"state": version.state},
            after={"state": str(transition.target), **_audited_facts(transition.fields)},
            reason=transition.reason,
        )
    version.state = transition.target
    for name, value in transition.fields.items():
        setattr(version, name, value)


def _conflict(version: ModelVersion, target: VersionState) -> Conflict:
    state = ModelVersion.objects.filter(pk=version.pk).values_list("state", flat=True).first()
    return Conflict(
        f"{version.label} is {state or 'gone'} now and cannot become {target}. Reload and try "
        "again.",
        code="wrong_state",
    )


def _audited_facts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts for the audit record: the identity of the bytes and the end of a release."""
    kept = {k: fields[k] for k in ("sha256", "size_bytes") if fields.get(k)}
    if "declared" in fields:
        return kept | {"declared": fields["declared"]}
    if fields.get("release"):
        kept["until"] = fields["release"]["until"]
    return kept
