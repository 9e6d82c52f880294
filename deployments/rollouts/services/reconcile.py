"""Reconcile a rollout: read one snapshot, observe, decide, one effect, again.

Its effects are rows only: the desired state of the deployment. Each is one transaction together
with the rollout's own move, so a crash never leaves half of one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import transaction

from deployments import audit_actions
from deployments.guards.domain.evidence import Verdict
from deployments.models import Rollout
from deployments.quality.selectors import quality
from deployments.rollouts.domain import decide
from deployments.rollouts.domain.decide import Decision, Effect
from deployments.rollouts.domain.observation import Checks, RolloutObservation
from deployments.rollouts.selectors import snapshots
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import (
    analysis,
    baselines,
    evidence,
    growth,
    promote,
    queueing,
    transitions,
)
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.serving.services import desired_state, timeline
from deployments.states import JUDGED_PHASES, ROLLOUT, RolloutPhase
from fleet.telemetry.services import poll
from portal.accounts.policy import SYSTEM
from portal.core import clock, leases
from portal.core.errors import Conflict

logger = logging.getLogger(__name__)

_LEASE_SECONDS = 30
_MOST_EFFECTS = 8
_CHECKS: Mapping[str, Checks] = {
    Verdict.PASSED: Checks.PASSED,
    Verdict.FAILED: Checks.FAILED,
    Verdict.NOT_ENOUGH: Checks.WAITING,
}


def sweep(*, limit: int = 50) -> int:
    due = leases.due(Rollout, limit=limit)
    for rollout_id in due:
        advance(rollout_id=rollout_id)
    return len(due)


def advance(*, rollout_id: int) -> None:
    """Do what is due for one rollout; nothing while another worker has the lease."""
    lease = leases.claim(Rollout, rollout_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return
    wait: float | None = None
    for _ in range(_MOST_EFFECTS):
        rollout = transitions.load(rollout_id)
        if not ROLLOUT[RolloutPhase(rollout.phase)]:
            wait = None
            break
        snapshot = snapshots.snapshot_of(rollout)
        decision = _decide(snapshot)
        wait = decision.requeue_seconds
        if decision.effect == Effect.WAIT:
            _wait(snapshot, decision)
            break
        try:
            _EFFECTS[decision.effect](snapshot, decision)
        except Conflict as error:
            logger.info("rollout=%s lost a race: %s", rollout_id, error.message)
    at = None if wait is None else clock.now() + timedelta(seconds=wait)
    leases.release(Rollout, lease, next_check_at=at)


def _decide(snapshot: RolloutSnapshot) -> Decision:
    """Decide by the current evidence, which is stored before the effect."""
    at, observed = clock.now(), observation_of(snapshot.rollout)
    progress = queueing.extend_deadline(snapshot, observed, at)
    if progress.phase not in JUDGED_PHASES or progress.step_started_at is None:
        return decide.decide(progress, observed, at)
    analysed = analysis.analyse(snapshot)
    evidence.store(snapshot, analysed)
    observed = replace(
        observed,
        failure=analysed.failure,
        is_auto_promotable=analysed.readiness.is_auto_promotable,
    )
    return decide.decide(progress, observed, at)


def observation_of(rollout: Rollout) -> RolloutObservation:
    """Return the observation in the columns that the deployment's reconciler wrote."""
    deployment = rollout.deployment
    stable = ObservedRevision.from_column(deployment.observed, rollout.stable_revision.number)
    candidate = ObservedRevision.from_column(deployment.observed, rollout.candidate_revision.number)
    baseline = rollout.deployment.baseline_revision
    of_baseline = (
        ObservedRevision.from_column(deployment.observed, baseline.number) if baseline else None
    )
    return RolloutObservation(
        is_baseline_ready=of_baseline.is_ready if of_baseline else None,
        baseline_unready_since=of_baseline.since if of_baseline else None,
        baseline_message=of_baseline.message if of_baseline else "",
        is_current=deployment_selectors.is_current(deployment),
        weight=deployment.observed_weight,
        mirror=deployment.observed_mirror,
        is_candidate_ready=candidate.is_ready,
        is_stable_ready=stable.is_ready,
        candidate_unready_since=candidate.since,
        candidate_message=candidate.message,
        is_queued=candidate.is_queued or (of_baseline is not None and of_baseline.is_queued),
        **_checks(rollout, is_ready=candidate.is_ready is True),
    )


def _checks(rollout: Rollout, *, is_ready: bool) -> dict[str, Any]:
    if rollout.phase != RolloutPhase.PREPARING or not is_ready:
        return {}
    answers = quality.before_traffic(rollout=rollout)
    return {"checks": _CHECKS[answers.verdict], "checks_message": answers.message}


def _wait(snapshot: RolloutSnapshot, decision: Decision) -> None:
    if decision.message and decision.message != snapshot.rollout.phase_reason:
        transitions.mark(snapshot.rollout, {"phase_reason": decision.message})


def _add_candidate(snapshot: RolloutSnapshot, decision: Decision) -> None:
    with transaction.atomic():
        _move(snapshot, RolloutPhase.PREPARING, decision.message)
        deployment = transitions.reload(snapshot.rollout)
        desired_state.add_candidate(
            deployment,
            snapshot.rollout.candidate_revision,
            replicas=growth.replicas_for(snapshot, 0),
            baseline=baselines.create(snapshot),
        )


def _start(snapshot: RolloutSnapshot, decision: Decision) -> None:
    with transaction.atomic():
        _move(snapshot, RolloutPhase.RUNNING, decision.message)
        _set_traffic(snapshot, decision)


def _set_weight(snapshot: RolloutSnapshot, decision: Decision) -> None:
    with transaction.atomic():
        _move(snapshot, snapshot.progress.phase, decision.message)
        _set_traffic(snapshot, decision)


def _set_traffic(snapshot: RolloutSnapshot, decision: Decision) -> None:
    deployment = transitions.reload(snapshot.rollout)
    desired_state.set_weight(deployment, decision.weight or 0, mirror=decision.mirror)


def _start_soak(snapshot: RolloutSnapshot, decision: Decision) -> None:
    """Request the first reading at once: a candidate that fails everything should be aborted before
    the next regular one.
    """
    rollout, deployment = snapshot.rollout, snapshot.rollout.deployment
    transitions.mark(rollout, {"step_started_at": clock.now(), "phase_reason": decision.message})
    compared = (rollout.stable_revision, rollout.candidate_revision, rollout.compared_revision)
    poll.poll_soon(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        names=[f"{deployment.name}-r{number}" for number in sorted({r.number for r in compared})],
    )


def _switch(snapshot: RolloutSnapshot, decision: Decision) -> None:
    """Send all requests to the candidate of a plan without steps, which was approved as "switch when ready"."""
    with transaction.atomic():
        _move(snapshot, RolloutPhase.RUNNING, decision.message)
        _move(snapshot, RolloutPhase.PROMOTING, decision.message)
        desired_state.set_weight(transitions.reload(snapshot.rollout), 100)


def _swap(snapshot: RolloutSnapshot, decision: Decision) -> None:
    with transaction.atomic():
        _move(snapshot, RolloutPhase.PROMOTING, decision.message)
        deployment = transitions.reload(snapshot.rollout)
        # A worker that lost its lease must not swap a second time, which would swap back.
        if not snapshots.is_swapped(snapshot.rollout):
            desired_state.swap(deployment)


def _watch(snapshot: RolloutSnapshot, decision: Decision) -> None:
    with transaction.atomic():
        _move(snapshot, RolloutPhase.WATCHING, decision.message)


def _drop_baseline(snapshot: RolloutSnapshot, decision: Decision) -> None:
    rollout = snapshot.rollout
    with transaction.atomic():
        if transitions.reload(rollout).baseline_revision is None:
            return
        desired_state.drop_baseline(rollout.deployment)
        timeline.note_rollout(
            rollout=rollout, kind="baseline", message=decision.message, actor=SYSTEM
        )


def _start_drain(snapshot: RolloutSnapshot, decision: Decision) -> None:
    transitions.mark(
        snapshot.rollout, {"drain_started_at": clock.now(), "phase_reason": decision.message}
    )


def _complete(snapshot: RolloutSnapshot, decision: Decision) -> None:
    with transaction.atomic():
        transitions.finish(snapshot=snapshot, to=RolloutPhase.COMPLETED, message=decision.message)
        promote.move_aliases(snapshot)


def _promote(snapshot: RolloutSnapshot, decision: Decision) -> None:
    promote.one_step(
        actor=SYSTEM,
        snapshot=snapshot,
        evidence_hash=snapshot.rollout.evidence_hash,
        message=decision.message,
    )


def _advance(snapshot: RolloutSnapshot, decision: Decision) -> None:
    promote.advance(snapshot, message=decision.message)


def _abort(snapshot: RolloutSnapshot, decision: Decision) -> None:
    transitions.begin_abort(
        actor=SYSTEM,
        snapshot=snapshot,
        action=audit_actions.ROLLOUT_ABORTED,
        reason=decision.message,
    )


def _finish_abort(snapshot: RolloutSnapshot, decision: Decision) -> None:
    with transaction.atomic():
        transitions.finish(
            snapshot=snapshot,
            to=RolloutPhase.ABORTED,
            message=decision.message,
            reason=_reason_of_abort(snapshot.rollout),
        )


def _reason_of_abort(rollout: Rollout) -> str:
    event = rollout.events.filter(kind=RolloutPhase.ABORTING).order_by("id").first()
    return event.message if event else "aborted"


def _move(snapshot: RolloutSnapshot, to: RolloutPhase, message: str) -> None:
    transitions.move(
        actor=SYSTEM, snapshot=snapshot, to=to, action=audit_actions.ROLLOUT_MOVED, message=message
    )


_EFFECTS: Mapping[Effect, Callable[[RolloutSnapshot, Decision], None]] = {
    Effect.ADD_CANDIDATE: _add_candidate,
    Effect.START: _start,
    Effect.SET_WEIGHT: _set_weight,
    Effect.START_SOAK: _start_soak,
    Effect.PROMOTE: _promote,
    Effect.ADVANCE: _advance,
    Effect.SWITCH: _switch,
    Effect.SWAP: _swap,
    Effect.WATCH: _watch,
    Effect.DROP_BASELINE: _drop_baseline,
    Effect.START_DRAIN: _start_drain,
    Effect.COMPLETE: _complete,
    Effect.ABORT: _abort,
    Effect.FINISH_ABORT: _finish_abort,
}
