"""What a rollout does next: pure, one effect per look, the safe direction written down per phase.

A robot may stop; only people let traffic move on. The approval of a plan starts its first step,
`promote` each further one, `promote fully` the last. Two plans were approved as more than that: one
without steps as "switch when ready", and a step with `auto_promote` as "on, when all guards pass".

No traffic before the candidate is ready and its answers were checked. A failed check, a guard that a
sequential test says to be exceeded, a candidate that is not ready any more and a passed deadline
abort by themselves. Numbers that are missing do nothing: they wait, and say so.

The safe direction (what every abort does to traffic):
- preparing: no traffic has moved. The candidate is removed.
- running, paused: the stable revision runs at full size, so everything goes back to it. Of a shadow
  the mirror ends: users only ever had the answers of stable.
- promoting, before the swap: the stable revision still runs at full size; everything goes back.
- promoting, after the swap (draining): the old revision still runs until it is drained, so abort
  swaps back. A passed deadline completes instead: the candidate carries all traffic already, and
  moving it again without being asked would be the riskier way.
- aborting: the weight is 0 already; only removal is left, so there is nothing to abort.
A sick or failing candidate is sent away by itself only while the stable revision is ready: traffic
is never moved onto a copy that is not known to work. A person may still abort.

A shadow gives the candidate copies of a share of the requests and drops its answers. Its steps are
those of a canary, with the mirrored share for a weight; no user gets an answer of the candidate
before a person promotes it to all requests, so its last step never promotes itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from deployments.plans.domain import descriptions
from deployments.rollouts.domain.observation import (
    NOTHING,
    Checks,
    RolloutObservation,
    RolloutPlan,
    Share,
)
from deployments.states import RolloutPhase

PREPARE_SECONDS: Final = 30 * 60
ABORT_SECONDS: Final = 10 * 60
PROMOTE_SECONDS: Final = 30 * 60
UNREADY_SECONDS: Final = 120
# The whole rollout may take its soak times and this long for people to decide.
DECIDE_SECONDS: Final = 7 * 24 * 3600
_LOOK_SECONDS: Final = 5.0
# While guards are watched; each new reading wakes the rollout besides.
_ANALYSIS_SECONDS: Final = 3.0


class Effect(StrEnum):
    WAIT = "wait"
    ADD_CANDIDATE = "add candidate"
    START = "start first step"
    SET_WEIGHT = "set weight"
    START_SOAK = "start soak"
    PROMOTE = "promote as approved"
    SWITCH = "switch"
    SWAP = "swap stable"
    START_DRAIN = "start drain"
    COMPLETE = "complete"
    ABORT = "abort"
    FINISH_ABORT = "finish abort"


@dataclass(frozen=True, slots=True)
class Decision:
    effect: Effect
    words: str
    weight: int | None = None
    look_again_seconds: float = _LOOK_SECONDS
    mirror: int = 0


def decide(plan: RolloutPlan, observed: RolloutObservation, now: datetime) -> Decision:
    """The one next effect. Final phases only wait."""
    if plan.phase in (RolloutPhase.COMPLETED, RolloutPhase.ABORTED):
        return Decision(Effect.WAIT, "finished")
    if plan.phase == RolloutPhase.ABORTING:
        return _decide_aborting(plan, observed, now)
    if plan.phase == RolloutPhase.PROMOTING:
        return _decide_promoting(plan, observed, now)
    if now >= plan.phase_deadline_at:
        return Decision(Effect.ABORT, _late_words(plan, observed))
    return _decide_on_the_way(plan, observed, now)


def _decide_on_the_way(plan: RolloutPlan, observed: RolloutObservation, now: datetime) -> Decision:
    if plan.phase == RolloutPhase.PREPARING:
        return _decide_preparing(plan, observed)
    if plan.phase == RolloutPhase.PAUSED and plan.desired == NOTHING:
        # Before any traffic: it begins again from preparing when someone carries on.
        return Decision(Effect.WAIT, "")
    return _decide_running(plan, observed, now)


def _decide_preparing(plan: RolloutPlan, observed: RolloutObservation) -> Decision:
    if not plan.is_candidate_wanted:
        return Decision(Effect.ADD_CANDIDATE, "the candidate is being created")
    if not observed.is_current:
        return Decision(Effect.WAIT, "waiting for the cluster to accept the candidate")
    if observed.is_candidate_ready is not True:
        why = observed.candidate_words or "it has not reported yet"
        return Decision(Effect.WAIT, f"the candidate is not ready: {why}")
    if observed.checks != Checks.PASSED:
        effect = Effect.ABORT if observed.checks == Checks.FAILED else Effect.WAIT
        return Decision(effect, f"before traffic: {observed.checks_words}")
    return _begin(plan)


def _begin(plan: RolloutPlan) -> Decision:
    if plan.is_direct:
        return Decision(Effect.SWITCH, "the revision is ready; all requests go to it", weight=100)
    first = plan.steps[0].weight
    if first == 0:
        words = "the candidate is ready and checked; it waits for promotion, without traffic"
        return Decision(Effect.START, words, weight=0)
    words = f"the candidate is ready; {_gets(plan, first)}"
    return Decision(Effect.START, words, weight=plan.asked.weight, mirror=plan.asked.mirror)


def _gets(plan: RolloutPlan, share: int) -> str:
    if plan.is_shadow:
        return f"{share}% of requests are mirrored to it; its answers are discarded"
    return f"it gets {share}%"


def _decide_running(plan: RolloutPlan, observed: RolloutObservation, now: datetime) -> Decision:
    if _is_sick(observed, now):
        return Decision(Effect.ABORT, _sick_words(observed))
    if observed.failing_words and observed.is_stable_ready is True:
        return Decision(Effect.ABORT, _failing_words(plan, observed))
    asked = plan.asked
    if plan.desired != asked and plan.phase == RolloutPhase.RUNNING:
        words = f"the route changes to {asked.words}"
        return Decision(Effect.SET_WEIGHT, words, weight=asked.weight, mirror=asked.mirror)
    if not observed.shows(asked):
        return Decision(Effect.WAIT, f"waiting for the route to {asked.words}")
    return _decide_soaking(plan, observed)


def _failing_words(plan: RolloutPlan, observed: RolloutObservation) -> str:
    """A mirrored candidate cannot hurt users, which is the first thing to know of its failure."""
    unhurt = "; users only got answers from the stable revision" if plan.is_shadow else ""
    return f"{observed.failing_words}{unhurt}"


def _decide_soaking(plan: RolloutPlan, observed: RolloutObservation) -> Decision:
    if plan.step_started_at is None:
        go = "are mirrored" if plan.is_shadow else "go"
        words = f"{plan.step.weight}% of requests {go} to the candidate"
        return Decision(Effect.START_SOAK, words)
    is_moving = plan.phase == RolloutPhase.RUNNING
    if is_moving and plan.may_promote_itself and observed.is_promotable:
        return Decision(Effect.PROMOTE, "promoted automatically, as approved with the plan")
    return Decision(Effect.WAIT, "", look_again_seconds=_ANALYSIS_SECONDS)


def _sick_words(observed: RolloutObservation) -> str:
    return f"the candidate is not ready: {observed.candidate_words or 'no reason given'}"


def _decide_promoting(plan: RolloutPlan, observed: RolloutObservation, now: datetime) -> Decision:
    if plan.is_swapped:
        return _decide_draining(plan, observed, now)
    if now >= plan.phase_deadline_at:
        return Decision(Effect.ABORT, _late_words(plan, observed))
    if _is_sick(observed, now):
        return Decision(Effect.ABORT, _sick_words(observed))
    if plan.desired != Share(100):
        return Decision(Effect.SET_WEIGHT, "all requests go to the candidate", weight=100)
    if not observed.shows(Share(100)):
        return Decision(Effect.WAIT, "waiting for the route to send 100%")
    return Decision(Effect.SWAP, "the candidate is now the stable revision", weight=0)


def _decide_draining(plan: RolloutPlan, observed: RolloutObservation, now: datetime) -> Decision:
    if now >= plan.phase_deadline_at:
        return Decision(Effect.COMPLETE, "the old revision is removed; draining was not confirmed")
    if not observed.shows(NOTHING):
        return Decision(Effect.WAIT, "waiting for the route to stop sending to the old revision")
    return _drain(plan, now, then=Effect.COMPLETE, what="the old revision")


def _decide_aborting(plan: RolloutPlan, observed: RolloutObservation, now: datetime) -> Decision:
    if plan.desired != NOTHING:
        return Decision(Effect.SET_WEIGHT, "all requests go back to stable", weight=0)
    if not plan.is_candidate_wanted:
        return Decision(Effect.FINISH_ABORT, "no candidate was created")
    if now >= plan.phase_deadline_at:
        words = "the candidate is removed; the cluster did not confirm it in time"
        return Decision(Effect.FINISH_ABORT, words)
    if not observed.shows(NOTHING):
        return Decision(Effect.WAIT, "waiting for the route to stop sending to the candidate")
    return _drain(plan, now, then=Effect.FINISH_ABORT, what="the candidate")


def _drain(plan: RolloutPlan, now: datetime, *, then: Effect, what: str) -> Decision:
    if plan.drain_started_at is None:
        return Decision(Effect.START_DRAIN, f"{what} gets no new requests and drains")
    left = plan.drain_started_at + timedelta(seconds=plan.drain_seconds) - now
    if left > timedelta(0):
        wait = left.total_seconds()
        return Decision(Effect.WAIT, f"{what} is draining", look_again_seconds=wait)
    return Decision(then, f"{what} is drained and removed")


def _is_sick(observed: RolloutObservation, now: datetime) -> bool:
    since = observed.candidate_unready_since
    return (
        observed.is_candidate_ready is False
        and observed.is_stable_ready is True
        and since is not None
        and now - since >= timedelta(seconds=UNREADY_SECONDS)
    )


def _late_words(plan: RolloutPlan, observed: RolloutObservation) -> str:
    if plan.phase == RolloutPhase.PREPARING:
        why = observed.candidate_words or "the cluster gave no reason"
        return f"the candidate was not ready in time: {why}"
    if plan.phase == RolloutPhase.PROMOTING:
        return "the route did not send all requests to the candidate in time"
    if plan.phase == RolloutPhase.RUNNING and plan.step.deadline_seconds is not None:
        allowed = descriptions.duration_words(plan.step.deadline_seconds)
        return f"step {plan.step_index + 1} was not promoted within {allowed}"
    return "nobody promoted it in time"
