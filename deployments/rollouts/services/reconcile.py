"""Move a rollout along: look at what the cluster showed, decide, one effect, look again.

Its effects are rows only: what the deployment wants. Each is one transaction together with the
rollout's own move, so there is no place between two of them at which a crash could leave half.
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
from deployments.plans.domain import rollout_plan
from deployments.plans.selectors import auto_promotion
from deployments.quality.selectors import quality
from deployments.rollouts.domain import decide
from deployments.rollouts.domain.decide import Decision, Effect
from deployments.rollouts.domain.observation import Checks, RolloutObservation, RolloutPlan
from deployments.rollouts.services import analysis, evidence, promote, transitions
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.serving.services import desired_state
from deployments.states import ROLLOUT, RolloutPhase
from fleet.telemetry.services import poll
from portal.accounts.policy import SYSTEM
from portal.core import clock, leases
from portal.core.errors import Conflict

logger = logging.getLogger(__name__)

_LEASE_SECONDS = 30
_MOST_EFFECTS = 8
_ANALYSED = (RolloutPhase.RUNNING, RolloutPhase.PAUSED)
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
    """Do what is due for one rollout; nothing when another worker holds it."""
    lease = leases.claim(Rollout, rollout_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return
    wait: float | None = None
    for _ in range(_MOST_EFFECTS):
        rollout = transitions.load(rollout_id)
        if not ROLLOUT[RolloutPhase(rollout.phase)]:
            wait = None
            break
        found = _decide(rollout)
        wait = found.look_again_seconds
        if found.effect == Effect.WAIT:
            _wait(rollout, found)
            break
        try:
            _EFFECTS[found.effect](rollout, found)
        except Conflict as error:
            logger.info("rollout=%s lost a race: %s", rollout_id, error.message)
    at = None if wait is None else clock.now() + timedelta(seconds=wait)
    leases.release(Rollout, lease, next_check_at=at)


def plan_of(rollout: Rollout) -> RolloutPlan:
    deployment = rollout.deployment
    return RolloutPlan(
        phase=RolloutPhase(rollout.phase),
        steps=auto_promotion.steps_of(rollout),
        step_index=rollout.step_index,
        step_started_at=rollout.step_started_at,
        phase_deadline_at=rollout.deadline_at,
        drain_seconds=rollout_plan.from_json(rollout.plan).drain_seconds,
        desired_weight=deployment.candidate_weight,
        is_candidate_wanted=deployment.candidate_revision_id is not None,
        is_swapped=transitions.is_swapped(rollout),
        drain_started_at=rollout.drain_started_at,
        is_shadow=rollout_plan.is_shadow(rollout.plan),
        desired_mirror=deployment.candidate_mirror,
    )


def _decide(rollout: Rollout) -> Decision:
    """With the evidence as it is now, stored before anything is done about it."""
    plan, at = plan_of(rollout), clock.now()
    if rollout.phase not in _ANALYSED or plan.step_started_at is None:
        return decide.decide(plan, observation_of(rollout), at)
    found = analysis.analyse(rollout, plan)
    evidence.store(rollout, found)
    observed = replace(
        observation_of(rollout),
        failing_words=found.failing_words,
        is_promotable=found.readiness.is_promotable,
    )
    return decide.decide(plan, observed, at)


def observation_of(rollout: Rollout) -> RolloutObservation:
    """From the columns that reconciliation wrote; never newer than what the cluster showed."""
    deployment = rollout.deployment
    stable = ObservedRevision.of(deployment.observed, rollout.stable_revision.number)
    candidate = ObservedRevision.of(deployment.observed, rollout.candidate_revision.number)
    return RolloutObservation(
        is_current=deployment_selectors.is_current(deployment),
        weight=deployment.observed_weight,
        mirror=deployment.observed_mirror,
        is_candidate_ready=candidate.is_ready,
        is_stable_ready=stable.is_ready,
        candidate_unready_since=candidate.since,
        candidate_words=candidate.message,
        **_checks(rollout, is_ready=candidate.is_ready is True),
    )


def _checks(rollout: Rollout, *, is_ready: bool) -> dict[str, Any]:
    if rollout.phase != RolloutPhase.PREPARING or not is_ready:
        return {}
    found = quality.before_traffic(rollout=rollout)
    return {"checks": _CHECKS[found.verdict], "checks_words": found.words}


def _wait(rollout: Rollout, found: Decision) -> None:
    if found.words and found.words != rollout.phase_reason:
        transitions.mark(rollout, {"phase_reason": found.words})


def _add_candidate(rollout: Rollout, found: Decision) -> None:
    with transaction.atomic():
        _move(rollout, RolloutPhase.PREPARING, found.words)
        desired_state.add_candidate(transitions.reload(rollout), rollout.candidate_revision)


def _start(rollout: Rollout, found: Decision) -> None:
    with transaction.atomic():
        _move(rollout, RolloutPhase.RUNNING, found.words)
        _share(rollout, found)


def _set_weight(rollout: Rollout, found: Decision) -> None:
    with transaction.atomic():
        _move(rollout, RolloutPhase(rollout.phase), found.words)
        _share(rollout, found)


def _share(rollout: Rollout, found: Decision) -> None:
    deployment = transitions.reload(rollout)
    desired_state.set_weight(deployment, found.weight or 0, mirror=found.mirror)


def _start_soak(rollout: Rollout, found: Decision) -> None:
    """Its first reading is asked for at once: a candidate that fails everything should be gone before
    the next usual one.
    """
    transitions.mark(rollout, {"step_started_at": clock.now(), "phase_reason": found.words})
    deployment = rollout.deployment
    revisions = (rollout.stable_revision, rollout.candidate_revision)
    poll.poll_soon(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        names=[f"{deployment.name}-r{revision.number}" for revision in revisions],
    )


def _switch(rollout: Rollout, found: Decision) -> None:
    """A plan without steps: approved as "switch when ready"."""
    with transaction.atomic():
        _move(rollout, RolloutPhase.RUNNING, found.words)
        _move(rollout, RolloutPhase.PROMOTING, found.words)
        desired_state.set_weight(transitions.reload(rollout), 100)


def _swap(rollout: Rollout, found: Decision) -> None:
    with transaction.atomic():
        _move(rollout, RolloutPhase.PROMOTING, found.words)
        deployment = transitions.reload(rollout)
        # A worker that lost its lease must not swap a second time, which would swap back.
        if not transitions.is_swapped(rollout):
            desired_state.swap(deployment)


def _start_drain(rollout: Rollout, found: Decision) -> None:
    transitions.mark(rollout, {"drain_started_at": clock.now(), "phase_reason": found.words})


def _complete(rollout: Rollout, found: Decision) -> None:
    with transaction.atomic():
        transitions.finish(rollout=rollout, to=RolloutPhase.COMPLETED, words=found.words)
        promote.move_alias(rollout)


def _promote(rollout: Rollout, found: Decision) -> None:
    promote.one_step(
        actor=SYSTEM, rollout=rollout, evidence_hash=rollout.evidence_hash, words=found.words
    )


def _abort(rollout: Rollout, found: Decision) -> None:
    transitions.begin_abort(
        actor=SYSTEM, rollout=rollout, action=audit_actions.ROLLOUT_ABORTED, reason=found.words
    )


def _finish_abort(rollout: Rollout, found: Decision) -> None:
    with transaction.atomic():
        transitions.finish(
            rollout=rollout,
            to=RolloutPhase.ABORTED,
            words=found.words,
            reason=_reason_of_abort(rollout),
        )


def _reason_of_abort(rollout: Rollout) -> str:
    event = rollout.events.filter(kind=RolloutPhase.ABORTING).order_by("id").first()
    return event.message if event else "aborted"


def _move(rollout: Rollout, to: RolloutPhase, words: str) -> None:
    transitions.move(
        actor=SYSTEM, rollout=rollout, to=to, action=audit_actions.ROLLOUT_MOVED, words=words
    )


_EFFECTS: Mapping[Effect, Callable[[Rollout, Decision], None]] = {
    Effect.ADD_CANDIDATE: _add_candidate,
    Effect.START: _start,
    Effect.SET_WEIGHT: _set_weight,
    Effect.START_SOAK: _start_soak,
    Effect.PROMOTE: _promote,
    Effect.SWITCH: _switch,
    Effect.SWAP: _swap,
    Effect.START_DRAIN: _start_drain,
    Effect.COMPLETE: _complete,
    Effect.ABORT: _abort,
    Effect.FINISH_ABORT: _finish_abort,
}
