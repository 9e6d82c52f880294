"""The only writer of a rollout's phase and step, and of what each change implies.

Every write is a compare-and-swap on phase and step: of a worker and two people who act at the same
moment, exactly one wins, and the others start over.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from deployments import audit_actions
from deployments.changes.services import transitions
from deployments.models import ChangeRequest, Deployment, Rollout
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.rollouts.domain import decide
from deployments.rollouts.domain.step_observation import StepObservation
from deployments.rollouts.selectors import snapshots
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import notifications, reference
from deployments.serving.selectors import revisions
from deployments.serving.services import desired_state, timeline
from deployments.states import ROLLOUT, ChangeState, RolloutPhase
from portal.accounts.policy import SYSTEM, Actor
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.errors import Conflict
from portal.core.wakeups import wake

_RELATED: Final = (
    "change__requester",
    "deployment__team",
    "deployment__cluster",
    "requested_by",
)
MOVED: Final = "Someone else moved the rollout at the same time. Reload the page."
_NOTHING_OBSERVED: Final[Mapping[str, Any]] = {
    "observed": {},
    "evidence": [],
    "evidence_at": None,
}
_SECONDS: Final[Mapping[RolloutPhase, int]] = {
    RolloutPhase.PREPARING: decide.PREPARE_SECONDS,
    RolloutPhase.PROMOTING: decide.PROMOTE_SECONDS,
    RolloutPhase.ABORTING: decide.ABORT_SECONDS,
}


def deadline_seconds(plan: RolloutPlan, phase: RolloutPhase, step_index: int) -> int:
    """Return the seconds from the beginning of the phase, or of the step while it is running."""
    if phase == RolloutPhase.RUNNING and plan.steps:
        of_step = plan.steps[step_index].deadline_seconds
        if of_step is not None:
            return of_step
    if phase == RolloutPhase.WATCHING:
        return plan.watched_seconds + plan.drain_seconds + decide.PROMOTE_SECONDS
    if phase in (RolloutPhase.PROMOTING, RolloutPhase.ABORTING):
        return _SECONDS[phase] + plan.drain_seconds
    soak = sum(step.soak_seconds for step in plan.steps)
    return _SECONDS.get(phase, decide.DECIDE_SECONDS + soak)


def move(
    *,
    actor: Actor,
    snapshot: RolloutSnapshot,
    to: RolloutPhase,
    action: AuditAction,
    message: str,
    reason: str = "",
    step_index: int | None = None,
    evidence: str | None = None,
    comment: str = "",
) -> None:
    """Call inside a transaction. Raises Conflict when the rollout has moved since it was read.

    `evidence`, when given, must still be the row's: the decision binds to it. `comment` is what the audit trail
    has as the reason of a decision whose message says more.
    """
    rollout = snapshot.rollout
    old = RolloutPhase(rollout.phase)
    if to != old and to not in ROLLOUT[old]:
        raise Conflict(f"The rollout is {old}, so it cannot become {to}.", code="rollout_phase")
    index = rollout.step_index if step_index is None else step_index
    rows = Rollout.objects.filter(
        pk=rollout.pk, phase=old, step_index=rollout.step_index, promoted_to=rollout.promoted_to
    )
    if evidence is not None:
        rows = rows.filter(evidence_hash=evidence)
    written = rows.update(**_columns(snapshot, to, index, reason or message))
    if written == 0:
        raise Conflict(MOVED, code="rollout_moved")
    before = {"phase": old, "step": rollout.step_index}
    if index != rollout.step_index:
        rollout.observed, rollout.evidence, rollout.evidence_at = {}, [], None
    rollout.phase, rollout.phase_reason, rollout.step_index = to, reason or message, index
    rollout.promoted_to = _promise(rollout, to, is_restart=before["step"] != index)
    announce(actor, rollout, action, before=before, message=message, reason=reason or comment)
    if ROLLOUT[to]:
        wake("deployments.advance_rollout", rollout.pk)


def _columns(
    snapshot: RolloutSnapshot, to: RolloutPhase, index: int, reason: str
) -> dict[str, Any]:
    """Return the columns of a move. The soak time of a new step begins when the route shows its weight."""
    rollout, at = snapshot.rollout, clock.now()
    is_first = (rollout.phase, to) == (RolloutPhase.PREPARING, RolloutPhase.RUNNING)
    is_restart = is_first or index != rollout.step_index
    # Figures and evidence of the last step do not apply to this one.
    cleared: dict[str, Any] = dict(_NOTHING_OBSERVED) if is_restart else {}
    is_watch = to == RolloutPhase.WATCHING
    if is_watch:
        # The figures of the watch are its own; the old revision drains from now on.
        lasts = timedelta(seconds=snapshot.plan.watched_seconds)
        passed = StepObservation.from_json(rollout.observed).has_passed
        cleared = {
            "observed": StepObservation(was_promotable=passed).to_json(),
            "evidence": [],
            "watch_until": at + lasts,
        }
    if _is_last_of_stable(snapshot, to, index):
        cleared["reference"] = reference.record(snapshot)
    return {
        **cleared,
        "phase": to,
        "phase_reason": reason,
        "step_index": index,
        "promoted_to": _promise(rollout, to, is_restart=is_restart),
        "step_started_at": _step_start(rollout, at, is_restart=is_restart, is_watch=is_watch),
        "deadline_at": at + timedelta(seconds=deadline_seconds(snapshot.plan, to, index)),
        "drain_started_at": at if is_watch else None,
        "finished_at": None if ROLLOUT[to] else at,
        "next_check_at": at if ROLLOUT[to] else None,
    }


def _promise(rollout: Rollout, to: RolloutPhase, *, is_restart: bool) -> int | None:
    """Return the step of a promotion that waits for replicas. It outlives a pause, and nothing else."""
    is_kept = not is_restart and to in (RolloutPhase.RUNNING, RolloutPhase.PAUSED)
    return rollout.promoted_to if is_kept else None


def _step_start(
    rollout: Rollout, at: datetime, *, is_restart: bool, is_watch: bool
) -> datetime | None:
    if is_watch:
        return at
    return None if is_restart else rollout.step_started_at


def _is_last_of_stable(snapshot: RolloutSnapshot, to: RolloutPhase, index: int) -> bool:
    """Whether stable gets requests now and will get none."""
    progress = snapshot.progress
    if progress.desired.weight == 100 or progress.is_swapped:
        return False
    is_step = to == RolloutPhase.RUNNING and not progress.is_direct
    return to == RolloutPhase.PROMOTING or (is_step and progress.is_alone_at(index))


def announce(
    actor: Actor,
    rollout: Rollout,
    action: AuditAction,
    *,
    before: Mapping[str, Any],
    message: str,
    reason: str,
) -> None:
    trail.record(
        actor=actor,
        action=action,
        obj=rollout,
        label=str(rollout.deployment),
        team_slug=rollout.team.slug,
        before=before,
        after={"phase": rollout.phase, "step": rollout.step_index},
        reason=reason,
        evidence=rollout.evidence_hash,
    )
    timeline.note_rollout(
        rollout=rollout,
        kind=rollout.phase,
        message=message,
        actor=actor,
        data={"evidence": rollout.evidence} if rollout.phase == RolloutPhase.ABORTING else None,
    )
    notifications.notify_progress(rollout, message=message)


def end_watch(*, actor: Actor, rollout: Rollout) -> None:
    """End the watch. The old revision is removed as soon as it is drained. Call inside a transaction. Raises
    Conflict when the watch is over, or has been ended.
    """
    at, until = clock.now(), rollout.watch_until
    rows = Rollout.objects.filter(
        pk=rollout.pk, phase=RolloutPhase.WATCHING, watch_until=until, watch_until__gt=at
    )
    if not rows.update(watch_until=at, next_check_at=at):
        raise Conflict("The rollout is no longer watched. Reload the page.", code="rollout_moved")
    rollout.watch_until = at
    announce(
        actor,
        rollout,
        audit_actions.ROLLOUT_WATCH_ENDED,
        before={"phase": rollout.phase, "watch_until": until.isoformat() if until else None},
        message="watch ended early; the old revision is removed",
        reason="",
    )
    wake("deployments.advance_rollout", rollout.pk)


def begin_abort(
    *, actor: Actor, snapshot: RolloutSnapshot, action: AuditAction, reason: str
) -> None:
    """Send all requests back to the revision that was stable when the rollout began, at once."""
    rollout = snapshot.rollout
    with transaction.atomic():
        move(
            actor=actor,
            snapshot=snapshot,
            to=RolloutPhase.ABORTING,
            action=action,
            message=f"aborted: {reason}" if reason else "aborted",
            reason=reason,
        )
        # Read after the row above is locked: a worker may have swapped a moment ago.
        deployment = reload(rollout)
        if snapshots.is_swapped(rollout) and deployment.candidate_revision is not None:
            desired_state.swap(deployment)
        elif deployment.candidate_weight or deployment.candidate_mirror:
            desired_state.set_weight(deployment, 0)


def load(rollout_id: int) -> Rollout:
    """Load a rollout with all rows that a reconcile pass needs."""
    rollout = Rollout.objects.select_related(*_RELATED).get(pk=rollout_id)
    revisions.load_onto(rollout, rollout.deployment)
    rollout.change.deployment = rollout.deployment
    return rollout


def reload(rollout: Rollout) -> Deployment:
    rows = Deployment.objects.select_related("team", "cluster")
    rollout.deployment = rows.get(pk=rollout.deployment_id)
    revisions.load_onto(rollout.deployment)
    return rollout.deployment


def finish(*, snapshot: RolloutSnapshot, to: RolloutPhase, message: str, reason: str = "") -> None:
    """Drop the revision that is no longer desired, and end the request. Call inside a transaction."""
    rollout, is_done = snapshot.rollout, to == RolloutPhase.COMPLETED
    move(
        actor=SYSTEM,
        snapshot=snapshot,
        to=to,
        action=audit_actions.ROLLOUT_MOVED,
        message=message,
        reason=reason,
    )
    if reload(rollout).candidate_revision is not None:
        desired_state.drop_candidate(rollout.deployment)
    change = ChangeRequest.objects.select_related("deployment__team").get(pk=rollout.change_id)
    if change.state != ChangeState.APPLYING:
        return
    transitions.move(
        actor=SYSTEM,
        change=change,
        to=ChangeState.DONE if is_done else ChangeState.FAILED,
        action=audit_actions.CHANGE_DONE if is_done else audit_actions.CHANGE_FAILED,
        reason="" if is_done else reason or "aborted",
    )


def mark(rollout: Rollout, fields: Mapping[str, Any]) -> bool:
    """Write facts of the present phase and step. False, and nothing written, when it has moved on."""
    rows = Rollout.objects.filter(pk=rollout.pk, phase=rollout.phase, step_index=rollout.step_index)
    return rows.update(**fields) == 1
