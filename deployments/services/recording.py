"""Write down what was observed: columns, timeline, state, and what waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from deployments.domain import health, progress, specs
from deployments.domain.progress import Progress
from deployments.domain.states import ChangeKind, ChangeState, DeploymentState
from deployments.models import ChangeRequest, Deployment, Revision, Rollout
from deployments.selectors.deployments import OPEN_PHASES
from deployments.services import actions, change_states, timeline
from deployments.services.observing import Observation
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.core import clock
from portal.core.leases import Lease
from portal.core.wakeups import wake

_SILENT = "Not known now: the cluster does not answer"


@dataclass(frozen=True, slots=True)
class _Look:
    """One revision as seen now, and what was written down of it before."""

    revision: Revision
    progress: Progress
    weight: int | None
    before: Mapping[str, Any]

    def to_json(self, at: datetime) -> dict[str, Any]:
        is_same = self.before.get("ready") == self.progress.is_ready
        since = self.before.get("since") if is_same else None
        return {
            **self.progress.to_json(),
            "weight": self.weight,
            "since": since or at.isoformat(),
        }


def record(
    deployment: Deployment, observation: Observation, lease: Lease, refusals: Mapping[int, str]
) -> bool:
    """Returns whether nothing is awaited any more. Writes nothing when the lease was lost."""
    at = clock.now()
    stable = _look(deployment, deployment.stable_revision, observation, refusals)
    candidate = _look(deployment, deployment.candidate_revision, observation, refusals)
    looks = [look for look in (stable, candidate) if look is not None]
    facts = health.Facts(
        stable=stable.progress if stable else None,
        candidate=candidate.progress if candidate else None,
        route_problem=observation.route_problem,
        was_ready=deployment.first_ready_at is not None,
        is_late=_is_late(deployment, at),
        is_retiring=deployment.is_retiring,
    )
    found = health.assess(facts, now=DeploymentState(deployment.state))
    is_ready = found.state == DeploymentState.READY
    with transaction.atomic():
        written = Deployment.objects.filter(pk=deployment.pk, lease_token=lease.token).update(
            observed={f"r{look.revision.number}": look.to_json(at) for look in looks},
            observed_generation=deployment.desired_generation,
            observed_weight=candidate.weight if candidate else None,
            observed_at=at,
            state=found.state,
            state_reason=found.reason,
            first_ready_at=deployment.first_ready_at or (at if is_ready else None),
        )
        if written == 0:
            return False
        for look in looks:
            _note_stages(deployment, look)
        _note_state(deployment, found)
        _settle(deployment, found, is_late=facts.is_late)
        _tell_rollout(deployment)
    return not deployment.is_retiring and is_ready and all(look.progress.is_ready for look in looks)


def record_silence(deployment_id: int, words: str) -> None:
    """The state stays what was seen last; the reason says that it may no longer be so."""
    deployment = Deployment.objects.select_related("team").filter(pk=deployment_id).first()
    if deployment is None:
        return
    reason = f"{_SILENT} ({words})."
    with transaction.atomic():
        if deployment.state_reason != reason:
            Deployment.objects.filter(pk=deployment_id).update(state_reason=reason)
        if not deployment.state_reason.startswith(_SILENT):
            timeline.note(deployment=deployment, kind="unreachable", message=reason, actor=SYSTEM)
        if _is_late(deployment, clock.now()):
            _end_late(deployment, reason)


def record_retired(deployment: Deployment, lease: Lease) -> None:
    at = clock.now()
    with transaction.atomic():
        written = Deployment.objects.filter(
            pk=deployment.pk, lease_token=lease.token, is_retired=False
        ).update(
            is_retired=True,
            state=DeploymentState.RETIRED,
            state_reason="",
            observed={},
            observed_weight=None,
            observed_generation=deployment.desired_generation,
            observed_at=at,
        )
        if written == 0:
            return
        timeline.note(
            deployment=deployment,
            kind="retired",
            message="everything is removed from the cluster",
            actor=SYSTEM,
        )
        _audit_state(deployment, DeploymentState.RETIRED, "everything is removed")
        change = _applying(deployment, ChangeKind.RETIRE)
        if change is not None:
            change_states.move(
                actor=SYSTEM, change=change, to=ChangeState.DONE, action=actions.CHANGE_DONE
            )


def _look(
    deployment: Deployment,
    revision: Revision | None,
    observation: Observation,
    refusals: Mapping[int, str],
) -> _Look | None:
    if revision is None:
        return None
    spec = specs.from_json(revision.spec)
    found = observation.progress_of(revision, spec)
    if revision.number in refusals:
        words = f"the cluster refuses it: {refusals[revision.number]}"
        found = Progress(found.stage, "refused", words, is_failing=True)
    return _Look(
        revision=revision,
        progress=found,
        weight=observation.weight_of(deployment, revision),
        before=deployment.observed.get(f"r{revision.number}", {}),
    )


def _note_stages(deployment: Deployment, look: _Look) -> None:
    """One line per stage reached, and one when it starts to fail."""
    stages = progress.STAGES
    number, name = look.revision.number, look.revision.workload_name
    before = look.before.get("stage", "missing")
    if look.progress.stage != before:
        reached = stages[stages.index(before) + 1 : stages.index(look.progress.stage) + 1]
        for stage in reached or [look.progress.stage]:
            timeline.note(
                deployment=deployment,
                kind=stage,
                message=progress.event_words(stage, name),
                actor=SYSTEM,
                revision_number=number,
            )
    if look.progress.is_failing and look.before.get("message") != look.progress.message:
        timeline.note(
            deployment=deployment,
            kind="failed",
            message=f"{name}: {look.progress.message}",
            actor=SYSTEM,
            revision_number=number,
        )


def _note_state(deployment: Deployment, found: health.Health) -> None:
    if found.state == deployment.state:
        return
    words = f"{found.state}: {found.reason}" if found.reason else str(found.state)
    timeline.note(deployment=deployment, kind="state", message=words, actor=SYSTEM)
    _audit_state(deployment, found.state, found.reason)


def _audit_state(deployment: Deployment, state: DeploymentState, reason: str) -> None:
    is_retired = state == DeploymentState.RETIRED
    trail.record(
        actor=SYSTEM,
        action=actions.DEPLOYMENT_RETIRED if is_retired else actions.DEPLOYMENT_STATE,
        obj=deployment,
        label=str(deployment),
        team_slug=deployment.team.slug,
        before={"state": deployment.state},
        after={"state": state},
        reason=reason,
    )


def _settle(deployment: Deployment, found: health.Health, *, is_late: bool) -> None:
    change = _applying(deployment, ChangeKind.DEPLOY)
    if change is not None and found.state == DeploymentState.READY:
        change_states.move(
            actor=SYSTEM, change=change, to=ChangeState.DONE, action=actions.CHANGE_DONE
        )
    elif is_late:
        _end_late(deployment, found.reason)


def _is_late(deployment: Deployment, at: datetime) -> bool:
    deadline = deployment.progress_deadline_at
    return deadline is not None and at >= deadline


def _end_late(deployment: Deployment, reason: str) -> None:
    """No request is applied for ever. What the deployment wants stays, and is still worked on.

    Rollouts end by the deadlines of their own phases.
    """
    for kind in (ChangeKind.DEPLOY, ChangeKind.RETIRE):
        change = _applying(deployment, kind)
        if change is None:
            continue
        is_removal = kind == ChangeKind.RETIRE
        words = f"Not removed in time; Slipway goes on trying. {reason}" if is_removal else reason
        change_states.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.FAILED,
            action=actions.CHANGE_FAILED,
            reason=words,
        )


def _applying(deployment: Deployment, kind: ChangeKind) -> ChangeRequest | None:
    rows = ChangeRequest.objects.select_related("deployment__team")
    return rows.filter(deployment=deployment, kind=kind, state=ChangeState.APPLYING).first()


def _tell_rollout(deployment: Deployment) -> None:
    """The rollout looks at what was just written; only if it waits for anything."""
    rows = Rollout.objects.filter(deployment=deployment, phase__in=OPEN_PHASES)
    for pk in rows.values_list("pk", flat=True):
        wake("deployments.advance_rollout", pk)
