"""Plans of the state machine of rollouts, and how long each of its phases may take."""

from __future__ import annotations

from deployments.plans.domain.rollout_plan import WATCH_SECONDS, PlanKind, RolloutPlan
from deployments.plans.domain.steps import Step
from deployments.rollouts.domain import decide
from deployments.states import RolloutPhase

DEADLINES = {
    RolloutPhase.PREPARING: decide.PREPARE_SECONDS,
    RolloutPhase.RUNNING: decide.DECIDE_SECONDS,
    RolloutPhase.PAUSED: decide.DECIDE_SECONDS,
    RolloutPhase.PROMOTING: decide.PROMOTE_SECONDS,
    RolloutPhase.WATCHING: WATCH_SECONDS + decide.PROMOTE_SECONDS,
    RolloutPhase.ABORTING: decide.ABORT_SECONDS,
}


def make_plan(
    weights: list[int], auto: list[bool], *, is_shadow: bool, is_watched: bool
) -> RolloutPlan:
    """Unchecked: the last step of a shadow may be automatic here, and must still wait."""
    is_blue_green = weights == [0]
    kind = PlanKind.BLUE_GREEN if is_blue_green else PlanKind.CANARY
    steps = tuple(
        Step(
            weight=weight,
            soak_seconds=60,
            min_requests=20,
            auto_promote=is_auto and not is_blue_green,
        )
        for weight, is_auto in zip(weights, auto, strict=False)
    )
    return RolloutPlan(
        kind=PlanKind.SHADOW if is_shadow else kind,
        watch_seconds=WATCH_SECONDS if is_watched else 0,
    ).with_steps(steps)
