"""What a rollout does next: pure, one effect per look, the safe direction written down per phase.

Traffic moves towards the candidate only by a person: the approval of a plan starts its first step,
`promote` starts each further one, `promote fully` the last. A plan without steps was approved as
"switch when ready", so its approval is the decision. Nothing here decides in their place.

The safe direction (what abort, a passed deadline and a sick candidate do to traffic):
- preparing: no traffic has moved. The candidate is removed.
- running, paused: the stable revision runs at full size, so everything goes back to it.
- promoting, before the swap: the stable revision still runs at full size; everything goes back.
- promoting, after the swap (draining): the old revision still runs until it is drained, so abort
  swaps back. A passed deadline completes instead: the candidate carries all traffic already, and
  moving it again without being asked would be the riskier way.
- aborting: the weight is 0 already; only removal is left, so there is nothing to abort.
A sick candidate is sent away by itself only while the stable revision is ready: traffic is never
moved onto a copy that is not known to work.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from deployments.domain import wording
from deployments.domain.problems import Rejected
from deployments.domain.rollout_plans import PlanKind
from deployments.domain.states import RolloutPhase

PREPARE_SECONDS: Final = 30 * 60
ABORT_SECONDS: Final = 10 * 60
PROMOTE_SECONDS: Final = 30 * 60
UNREADY_SECONDS: Final = 120
# The whole rollout may take its soak times and this long for people to decide.
DECIDE_SECONDS: Final = 7 * 24 * 3600
_LOOK_SECONDS: Final = 5.0
_MOST_STEPS = 10
_LONGEST_SOAK = 7 * 24 * 3600
_MOST_REQUESTS = 10_000_000
_FEWEST_FOR_AUTO = 20
_LEAST_AFTER_SOAK = 60


@dataclass(frozen=True, slots=True)
class Step:
    weight: int
    soak_seconds: int
    min_requests: int
    # Approved with the plan: when all guards pass, this step is promoted without asking again.
    auto_promote: bool = False
    # From entering the step; a step that is not promoted by then is aborted.
    deadline_seconds: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


# Of blue/green: no traffic until a person promotes fully.
DARK_STEP: Final = Step(weight=0, soak_seconds=0, min_requests=0)


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """What was approved, and how far people have let it go. `is_swapped`: the candidate is stable."""

    phase: RolloutPhase
    steps: tuple[Step, ...]
    step_index: int
    step_started_at: datetime | None
    phase_deadline_at: datetime
    drain_seconds: int
    desired_weight: int
    is_candidate_wanted: bool
    is_swapped: bool
    drain_started_at: datetime | None

    @property
    def is_direct(self) -> bool:
        return not self.steps

    @property
    def step(self) -> Step:
        return self.steps[self.step_index]


@dataclass(frozen=True, slots=True)
class RolloutObservation:
    """What the cluster shows. None is "not known"; `weight` is what the route sends the candidate.

    `is_current` is whether the cluster was seen after the last change of what is wanted.
    """

    is_current: bool
    weight: int | None
    is_candidate_ready: bool | None
    is_stable_ready: bool | None
    candidate_unready_since: datetime | None = None
    candidate_words: str = ""


class Effect(StrEnum):
    WAIT = "wait"
    ADD_CANDIDATE = "add candidate"
    START = "start first step"
    SET_WEIGHT = "set weight"
    START_SOAK = "start soak"
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


def check_steps(
    steps: list[dict[str, Any]], *, kind: PlanKind = PlanKind.CANARY
) -> tuple[Step, ...]:
    """Raises Rejected unless weights rise strictly within 1..99 (100 is what promoting ends with)
    or end with 100. Blue/green has one dark step of 0 %, which may be left out."""
    if kind == PlanKind.BLUE_GREEN:
        return _check_dark_step(steps)
    if not isinstance(steps, list) or not 1 <= len(steps) <= _MOST_STEPS:
        raise _bad_steps(f"Give 1 to {_MOST_STEPS} steps, for example 5, 25, 50 and 100 percent.")
    made = tuple(_check_step(index, step) for index, step in enumerate(steps))
    weights = [step.weight for step in made]
    if weights != sorted(set(weights)):
        raise _bad_steps(f"The weights {weights} must rise from step to step.")
    return made


def _check_dark_step(steps: Any) -> tuple[Step, ...]:
    dark = steps or [DARK_STEP.to_json()]
    words = "Blue/green has one step of 0 %: the candidate is checked in the dark, then takes over."
    if not isinstance(dark, list) or len(dark) != 1 or not isinstance(dark[0], dict):
        raise _bad_steps(words)
    if dark[0].get("weight") != 0 or dark[0].get("min_requests") or dark[0].get("auto_promote"):
        raise _bad_steps(f"{words} It sees no requests, and a person ends it.")
    return (_check_step(0, {**dark[0], "weight": 1}, is_dark=True),)


def _check_step(index: int, step: Any, *, is_dark: bool = False) -> Step:
    ranges = {
        "weight": (1, 100),
        "soak_seconds": (0, _LONGEST_SOAK),
        "min_requests": (0, _MOST_REQUESTS),
    }
    optional = {"auto_promote", "deadline_seconds"}
    if not isinstance(step, dict) or not set(ranges) <= set(step) <= set(ranges) | optional:
        words = f"Step {index + 1} needs {', '.join(ranges)}, and may have {', '.join(optional)}."
        raise _bad_steps(words)
    for name, (least, most) in ranges.items():
        value = step[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise _bad_steps(
                f"{name} of step {index + 1} must be a whole number {least} to {most}."
            )
    made = Step(**{**step, "weight": 0} if is_dark else step)
    _check_options(index, made)
    return made


def _check_options(index: int, step: Step) -> None:
    if not isinstance(step.auto_promote, bool):
        raise _bad_steps(f"auto_promote of step {index + 1} must be true or false.")
    if step.auto_promote and step.min_requests < _FEWEST_FOR_AUTO:
        raise _bad_steps(
            f"Step {index + 1} promotes by itself, so it needs min_requests of at least "
            f"{_FEWEST_FOR_AUTO}: nobody else looks at what it saw."
        )
    deadline = step.deadline_seconds
    if deadline is None:
        return
    least = step.soak_seconds + _LEAST_AFTER_SOAK
    is_whole = isinstance(deadline, int) and not isinstance(deadline, bool)
    if not is_whole or not least <= deadline <= 2 * _LONGEST_SOAK:
        raise _bad_steps(
            f"deadline_seconds of step {index + 1} must be a whole number {least} (its soak time "
            f"and a minute) to {2 * _LONGEST_SOAK}."
        )


def _bad_steps(words: str) -> Rejected:
    return Rejected(words, {"steps": words})


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
    if plan.phase == RolloutPhase.PAUSED and plan.desired_weight == 0:
        return Decision(Effect.WAIT, "")
    return _decide_running(plan, observed, now)


def _decide_preparing(plan: RolloutPlan, observed: RolloutObservation) -> Decision:
    if not plan.is_candidate_wanted:
        return Decision(Effect.ADD_CANDIDATE, "the candidate is put beside the stable revision")
    if not observed.is_current:
        return Decision(Effect.WAIT, "waiting for the cluster to take the candidate")
    if observed.is_candidate_ready is not True:
        why = observed.candidate_words or "it has not reported yet"
        return Decision(Effect.WAIT, f"the candidate is not ready: {why}")
    if plan.is_direct:
        return Decision(Effect.SWITCH, "the revision is ready; all requests go to it", weight=100)
    first = plan.steps[0].weight
    return Decision(Effect.START, f"the candidate is ready; it gets {first} %", weight=first)


def _decide_running(plan: RolloutPlan, observed: RolloutObservation, now: datetime) -> Decision:
    if _is_sick(observed, now):
        words = f"the candidate is not ready: {observed.candidate_words or 'no reason given'}"
        return Decision(Effect.ABORT, words)
    if plan.desired_weight != plan.step.weight and plan.phase == RolloutPhase.RUNNING:
        words = f"the candidate gets {plan.step.weight} %"
        return Decision(Effect.SET_WEIGHT, words, weight=plan.step.weight)
    if not observed.is_current or observed.weight != plan.step.weight:
        return Decision(Effect.WAIT, f"waiting for the route to send {plan.step.weight} %")
    if plan.step_started_at is None:
        return Decision(Effect.START_SOAK, f"{plan.step.weight} % of requests go to the candidate")
    return Decision(Effect.WAIT, "")


def _decide_promoting(plan: RolloutPlan, observed: RolloutObservation, now: datetime) -> Decision:
    if plan.is_swapped:
        return _decide_draining(plan, observed, now)
    if now >= plan.phase_deadline_at:
        return Decision(Effect.ABORT, _late_words(plan, observed))
    if _is_sick(observed, now):
        words = f"the candidate is not ready: {observed.candidate_words or 'no reason given'}"
        return Decision(Effect.ABORT, words)
    if plan.desired_weight != 100:
        return Decision(Effect.SET_WEIGHT, "all requests go to the candidate", weight=100)
    if not observed.is_current or observed.weight != 100:
        return Decision(Effect.WAIT, "waiting for the route to send 100 %")
    return Decision(Effect.SWAP, "the candidate is now the stable revision", weight=0)


def _decide_draining(plan: RolloutPlan, observed: RolloutObservation, now: datetime) -> Decision:
    if now >= plan.phase_deadline_at:
        return Decision(Effect.COMPLETE, "the old revision is removed; its drain was not confirmed")
    if not observed.is_current or observed.weight != 0:
        return Decision(Effect.WAIT, "waiting for the route to send the old revision nothing")
    return _drain(plan, now, then=Effect.COMPLETE, what="the old revision")


def _decide_aborting(plan: RolloutPlan, observed: RolloutObservation, now: datetime) -> Decision:
    if plan.desired_weight != 0:
        return Decision(Effect.SET_WEIGHT, "all requests go back to stable", weight=0)
    if not plan.is_candidate_wanted:
        return Decision(Effect.FINISH_ABORT, "no candidate had been made")
    if now >= plan.phase_deadline_at:
        words = "the candidate is removed; the cluster has not confirmed it in time"
        return Decision(Effect.FINISH_ABORT, words)
    if not observed.is_current or observed.weight != 0:
        return Decision(Effect.WAIT, "waiting for the route to send the candidate nothing")
    return _drain(plan, now, then=Effect.FINISH_ABORT, what="the candidate")


def _drain(plan: RolloutPlan, now: datetime, *, then: Effect, what: str) -> Decision:
    if plan.drain_started_at is None:
        return Decision(Effect.START_DRAIN, f"{what} gets no requests; it drains")
    left = plan.drain_started_at + timedelta(seconds=plan.drain_seconds) - now
    if left > timedelta(0):
        wait = left.total_seconds()
        return Decision(Effect.WAIT, f"{what} drains", look_again_seconds=wait)
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
        why = observed.candidate_words or "the cluster did not say why"
        return f"the candidate was not ready in time: {why}"
    if plan.phase == RolloutPhase.PROMOTING:
        return "the route did not send all requests to the candidate in time"
    return "nobody promoted it in time"


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a person may promote now, in words either way."""

    is_promotable: bool
    words: str
    soak_left_seconds: int


def promotable(
    plan: RolloutPlan,
    *,
    candidate_requests: int | None,
    failing: tuple[str, ...],
    undecided: tuple[str, ...],
    now: datetime,
) -> Readiness:
    """After soak and enough requests, when no guard fails. What is not known waits and says so."""
    if plan.step_started_at is None:
        words = "the route does not send the asked weight yet"
        return Readiness(is_promotable=False, words=words, soak_left_seconds=0)
    end = plan.step_started_at + timedelta(seconds=plan.step.soak_seconds)
    left = max(0, int((end - now).total_seconds()))
    needed, counted = plan.step.min_requests, candidate_requests
    lacks = (
        (bool(failing), f"failing: {', '.join(failing)}. Abort, or wait."),
        (left > 0, f"soaks for {wording.duration_words(left)} more"),
        (needed > 0 and counted is None, "the candidate's requests are not known"),
        (needed > (counted or 0), f"{counted or 0} of {needed} requests so far"),
        (needed > 0 and bool(undecided), f"not enough data: {', '.join(undecided)}"),
    )
    missing = next((words for is_lacking, words in lacks if is_lacking), "")
    words = missing or "soak done, enough requests, no guard fails"
    return Readiness(is_promotable=not missing, words=words, soak_left_seconds=left)
