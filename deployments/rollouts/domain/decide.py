"""The next effect of a rollout. Pure functions: one effect per reconcile pass, the safe direction per phase.

Automation may abort; only people move traffic forward. The approval of a plan starts its first
step, `promote` each further one, `promote fully` the last. Two plans are approved as more than
that: one without steps as "switch when ready", and a step with `auto_promote` as "continue when all
guards pass".

The candidate has as many replicas as its traffic needs: they are ready before its weight rises, and none
is taken away while it has traffic. A promotion waits for them at the step before, which is judged on.

No traffic before the candidate is ready and its answers were checked. A failed check, a guard that
fails its sequential test, a candidate that is no longer ready and a passed deadline abort the
rollout. Missing numbers neither promote nor abort: the rollout waits, with the reason. What no guard
can judge leaves the step to a person, whatever the plan says.

The safe direction (what every abort does to traffic):
- preparing: no traffic has moved. The candidate is removed.
- running, paused: the stable revision runs at full size, so all traffic goes back to it. Mirroring
  to a shadow ends: users only ever had the answers of stable.
- promoting, before the swap: the stable revision still runs at full size; all traffic goes back.
- promoting, after the swap (draining): the old revision still runs until it is drained, so abort
  swaps back. A passed deadline completes instead: the candidate carries all traffic already, and
  moving it again without a request would be the riskier way.
- watching: the old revision is still warm, so abort swaps back to it. A failing guard aborts as in a
  step; when the time is over the old revision is drained and removed.
- aborting: the weight is 0 already; only removal is left, so there is nothing to abort. It ends when the live
  route sends the candidate nothing, however late that is: no deadline makes it true.
An unready or failing candidate is aborted automatically only while the stable revision is ready:
traffic is never moved onto a copy that is not known to work. A person may still abort.

A baseline is made with the candidate and is ready before either gets traffic. It stays while the rollout is
paused, because the candidate keeps its traffic and is judged on. Once the route sends it nothing it drains
and is removed: at a step of 100% and after promotion by an effect of its own, else with the candidate. One
that is no longer ready aborts as a candidate does: users get its answers too.

A shadow mirrors a percentage of the requests to the candidate and drops its answers. Its steps are
those of a canary, with the mirrored percentage for a weight; no user gets an answer of the
candidate before a person promotes it to all requests, so its last step is never promoted
automatically.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from deployments.plans.domain import descriptions
from deployments.rollouts.domain import pod_readiness
from deployments.rollouts.domain.observation import (
    NO_TRAFFIC,
    Checks,
    RolloutObservation,
    RolloutProgress,
    TrafficSplit,
)
from deployments.states import RolloutPhase

PREPARE_SECONDS: Final = 30 * 60
ABORT_SECONDS: Final = 10 * 60
PROMOTE_SECONDS: Final = 30 * 60
# The whole rollout may take its soak times and this long for people to decide.
DECIDE_SECONDS: Final = 7 * 24 * 3600
_REQUEUE_SECONDS: Final = 5.0
# While guards are watched; each new reading wakes the rollout besides.
_ANALYSIS_SECONDS: Final = 3.0


class Effect(StrEnum):
    WAIT = "wait"
    ADD_CANDIDATE = "add candidate"
    START = "start first step"
    SET_WEIGHT = "set weight"
    START_SOAK = "start soak"
    PROMOTE = "promote as approved"
    ADVANCE = "advance as promoted"
    SWITCH = "switch"
    SWAP = "swap stable"
    WATCH = "watch"
    DROP_BASELINE = "drop baseline"
    START_DRAIN = "start drain"
    COMPLETE = "complete"
    ABORT = "abort"
    FINISH_ABORT = "finish abort"


@dataclass(frozen=True, slots=True)
class Decision:
    effect: Effect
    message: str
    weight: int | None = None
    requeue_seconds: float = _REQUEUE_SECONDS
    mirror: int = 0


def decide(progress: RolloutProgress, observed: RolloutObservation, now: datetime) -> Decision:
    """Decide the one next effect. Final phases only wait."""
    if progress.phase in (RolloutPhase.COMPLETED, RolloutPhase.ABORTED):
        return Decision(Effect.WAIT, "finished")
    if progress.phase == RolloutPhase.ABORTING:
        return _decide_aborting(progress, observed, now)
    if progress.phase == RolloutPhase.PROMOTING:
        return _decide_promoting(progress, observed, now)
    if progress.phase == RolloutPhase.WATCHING:
        return _decide_watching(progress, observed, now)
    if now >= progress.phase_deadline_at:
        return Decision(Effect.ABORT, pod_readiness.describe_deadline(progress, observed))
    return _decide_before_promoting(progress, observed, now)


def _decide_before_promoting(
    progress: RolloutProgress, observed: RolloutObservation, now: datetime
) -> Decision:
    if progress.phase == RolloutPhase.PREPARING:
        return _decide_preparing(progress, observed)
    if progress.phase == RolloutPhase.PAUSED and progress.desired == NO_TRAFFIC:
        # Before any traffic: it begins again from preparing when someone carries on.
        return Decision(Effect.WAIT, "")
    return _decide_running(progress, observed, now)


def _decide_preparing(progress: RolloutProgress, observed: RolloutObservation) -> Decision:
    if not progress.is_candidate_desired:
        return Decision(Effect.ADD_CANDIDATE, "the candidate is being created")
    if not observed.is_current:
        return Decision(Effect.WAIT, "waiting for the cluster to accept the candidate")
    if observed.is_candidate_ready is not True:
        why = observed.candidate_message or "it has not reported yet"
        return Decision(Effect.WAIT, f"the candidate is not ready: {why}")
    if progress.is_baseline_desired and observed.is_baseline_ready is not True:
        why = observed.baseline_message or "it has not reported yet"
        return Decision(Effect.WAIT, f"the baseline is not ready: {why}")
    if observed.checks != Checks.PASSED:
        effect = Effect.ABORT if observed.checks == Checks.FAILED else Effect.WAIT
        return Decision(effect, f"before traffic: {observed.checks_message}")
    return _begin(progress)


def _begin(progress: RolloutProgress) -> Decision:
    if progress.is_direct:
        return Decision(Effect.SWITCH, "the revision is ready; all requests go to it", weight=100)
    first = progress.plan.steps[0].weight
    if first == 0:
        message = "the candidate is ready and checked; it waits for promotion, without traffic"
        return Decision(Effect.START, message, weight=0)
    message = f"the candidate is ready; {_gets(progress, first)}"
    return Decision(
        Effect.START, message, weight=progress.requested.weight, mirror=progress.requested.mirror
    )


def _gets(progress: RolloutProgress, share: int) -> str:
    if progress.is_shadow:
        return f"{share}% of requests are mirrored to it; its responses are discarded"
    return f"it gets {share}%"


def _decide_running(
    progress: RolloutProgress, observed: RolloutObservation, now: datetime
) -> Decision:
    # While it grows, pods that are not ready are those that start.
    if progress.promoted_to is None and pod_readiness.is_unready(observed, now):
        return Decision(Effect.ABORT, _describe_unready(observed))
    if progress.baseline_weight and pod_readiness.is_baseline_unready(progress, observed, now):
        why = observed.baseline_message or "no reason given"
        return Decision(Effect.ABORT, f"the baseline is not ready: {why}")
    if observed.failure and observed.is_stable_ready is True:
        return Decision(Effect.ABORT, _describe_failure(progress, observed))
    requested = progress.requested
    if progress.desired != requested and progress.phase == RolloutPhase.RUNNING:
        message = f"the route changes to {requested}"
        return Decision(
            Effect.SET_WEIGHT, message, weight=requested.weight, mirror=requested.mirror
        )
    if not observed.shows(requested):
        return Decision(Effect.WAIT, f"waiting for the route to {requested}")
    return _decide_soaking(progress, observed, now)


def _describe_failure(progress: RolloutProgress, observed: RolloutObservation) -> str:
    """Describe the failure. A mirrored candidate cannot hurt users, which is the first thing to know of it."""
    unhurt = "; users only got answers from the stable revision" if progress.is_shadow else ""
    return f"{observed.failure}{unhurt}"


def _decide_soaking(
    progress: RolloutProgress, observed: RolloutObservation, now: datetime
) -> Decision:
    if progress.step_started_at is None:
        go = "are mirrored" if progress.is_shadow else "go"
        message = f"{progress.step.weight}% of requests {go} to the candidate"
        return Decision(Effect.START_SOAK, message)
    if progress.is_baseline_drained(now):
        return Decision(Effect.DROP_BASELINE, "the baseline is drained and removed")
    is_moving = progress.phase == RolloutPhase.RUNNING
    if progress.promoted_to is not None:
        has_grown = observed.is_current and pod_readiness.are_ready(progress, observed)
        if is_moving and has_grown:
            return Decision(Effect.ADVANCE, "the candidate has the replicas that it needs")
        return Decision(Effect.WAIT, "", requeue_seconds=_ANALYSIS_SECONDS)
    if is_moving and progress.is_promoted_automatically and observed.is_auto_promotable:
        return Decision(Effect.PROMOTE, "promoted automatically, as approved with the plan")
    return Decision(Effect.WAIT, "", requeue_seconds=_ANALYSIS_SECONDS)


def _describe_unready(observed: RolloutObservation) -> str:
    return f"the candidate is not ready: {observed.candidate_message or 'no reason given'}"


def _decide_promoting(
    progress: RolloutProgress, observed: RolloutObservation, now: datetime
) -> Decision:
    if progress.is_swapped:
        return _decide_draining(progress, observed, now)
    if now >= progress.phase_deadline_at:
        return Decision(Effect.ABORT, pod_readiness.describe_deadline(progress, observed))
    if pod_readiness.is_unready(observed, now):
        return Decision(Effect.ABORT, _describe_unready(observed))
    if progress.desired != TrafficSplit(100):
        return Decision(Effect.SET_WEIGHT, "all requests go to the candidate", weight=100)
    if not observed.shows(TrafficSplit(100)):
        return Decision(Effect.WAIT, "waiting for the route to send 100%")
    return Decision(Effect.SWAP, "the candidate is now the stable revision", weight=0)


def _decide_draining(
    progress: RolloutProgress, observed: RolloutObservation, now: datetime
) -> Decision:
    if now >= progress.phase_deadline_at:
        return Decision(Effect.COMPLETE, "the old revision is removed; draining was not confirmed")
    if not observed.shows(NO_TRAFFIC):
        return Decision(Effect.WAIT, "waiting for the route to stop sending to the old revision")
    if progress.plan.watched_seconds and progress.drain_started_at is None:
        lasts = descriptions.format_duration(progress.plan.watched_seconds)
        message = f"the candidate is stable and watched for {lasts}; the old revision stays warm"
        return Decision(Effect.WATCH, message)
    return _drain(progress, now, then=Effect.COMPLETE, what="the old revision")


def _decide_watching(
    progress: RolloutProgress, observed: RolloutObservation, now: datetime
) -> Decision:
    """Decide during the watch. No requests reach the old revision since it began, so it drains meanwhile. A
    failure counts as long as it is there, unless a person ended the watch.
    """
    if now >= progress.phase_deadline_at:
        return Decision(Effect.COMPLETE, "the old revision is removed; draining was not confirmed")
    if not progress.is_watch_ended_early:
        if pod_readiness.is_unready(observed, now):
            return Decision(Effect.ABORT, _describe_unready(observed))
        if observed.failure and observed.is_stable_ready is True:
            return Decision(Effect.ABORT, observed.failure)
    if progress.is_baseline_drained(now):
        return Decision(Effect.DROP_BASELINE, "the baseline is drained and removed")
    if progress.watch_until is not None and now >= progress.watch_until:
        return _drain(progress, now, then=Effect.COMPLETE, what="the old revision")
    return Decision(Effect.WAIT, "", requeue_seconds=_ANALYSIS_SECONDS)


def _decide_aborting(
    progress: RolloutProgress, observed: RolloutObservation, now: datetime
) -> Decision:
    if progress.desired != NO_TRAFFIC:
        return Decision(Effect.SET_WEIGHT, "all requests go back to stable", weight=0)
    if not progress.is_candidate_desired:
        return Decision(Effect.FINISH_ABORT, "no candidate was created")
    if not observed.shows(NO_TRAFFIC):
        return Decision(Effect.WAIT, _describe_unconfirmed(progress, observed, now))
    return _drain(progress, now, then=Effect.FINISH_ABORT, what="the candidate")


def _describe_unconfirmed(
    progress: RolloutProgress, observed: RolloutObservation, now: datetime
) -> str:
    """Say why an abort is not confirmed, however long it takes: requests may still reach the candidate, and its
    pods answer them.
    """
    if now < progress.phase_deadline_at:
        return "waiting for the route to stop sending to the candidate"
    if observed.weight is None and observed.mirror is None:
        return "not confirmed: the gateway does not say what the route sends to the candidate"
    sent = TrafficSplit(observed.weight or 0, observed.mirror or 0)
    if sent == NO_TRAFFIC:
        return "not confirmed: the cluster has not answered since the abort"
    return f"not confirmed: the route was last seen to {sent} to the candidate"


def _drain(progress: RolloutProgress, now: datetime, *, then: Effect, what: str) -> Decision:
    if progress.drain_started_at is None:
        return Decision(Effect.START_DRAIN, f"{what} gets no new requests and drains")
    left = progress.drain_started_at + timedelta(seconds=progress.plan.drain_seconds) - now
    if left > timedelta(0):
        wait = left.total_seconds()
        return Decision(Effect.WAIT, f"{what} is draining", requeue_seconds=wait)
    return Decision(then, f"{what} is drained and removed")
