"""The rollout plan of a change request: its kind, steps and guards, and how the guards are tested.

This is the one definition: reading, rules, REST schema and form fields follow from it. A new
setting is one field here with its rule and its description.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from deployments.guards.domain import guard_set
from deployments.guards.domain.answers.answer_metrics import QUALITY, QualityMetric
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.guard_set import PlanGuards
from deployments.plans.domain import baseline
from deployments.plans.domain.steps import LONGEST_SOAK_SECONDS, ZERO_TRAFFIC_STEP, Step
from deployments.plans.domain.warm_up import DEFAULT_WARMUP_SECONDS
from deployments.spec.domain import model_names
from portal.core.definitions import Rejected, rejection_of

DRAIN_SECONDS: Final = 15
_LONGEST_DRAIN_SECONDS: Final = 24 * 3600
LONGEST_WARMUP_SECONDS: Final = 3600
WATCH_SECONDS: Final = 600
_LONGEST_WATCH_SECONDS: Final = 24 * 3600
_MOST_STEPS: Final = 10
_LEAST_REQUESTS_FOR_AUTO: Final = 20
_LEAST_AFTER_SOAK_SECONDS: Final = 60
_ONE_STEP: Final = (
    "Blue/green has one step with 0% traffic: the candidate is checked, then takes over."
)


class PlanKind(StrEnum):
    CANARY = "canary"
    BLUE_GREEN = "blue-green"
    SHADOW = "shadow"


class AnalysisSettings(BaseModel):
    """The tests of the guards.

    `alpha` bounds the probability of aborting a good candidate, over the whole rollout.
    `is_strict` False: a guard also passes after enough requests when no test finds a regression.
    `is_robust` True: the slow lane takes the payoff for services with long bursts of their own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", title="Analysis")

    alpha: StrictFloat = Field(
        default=0.01,
        ge=0.0001,
        le=0.2,
        description="probability of aborting a good candidate by chance",
    )
    is_strict: StrictBool = Field(
        default=False,
        description="a guard passes only when the candidate is proven to be within the limit",
    )
    is_robust: StrictBool = Field(
        default=False,
        description="for services with long bursts: fewer false aborts, but detecting a regression takes "
        "about twice as long",
    )

    @property
    def payoff(self) -> Payoff:
        return Payoff.SYMMETRIC if self.is_robust else Payoff.CAPPED


class PlanSettings(BaseModel):
    """The settings of a rollout plan; parts that are left out have their defaults. Blue/green has one step of
    weight 0, or no steps. A shadow mirrors requests and drops the candidate's answers; it needs a gateway
    that can.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", title="Plan")

    kind: PlanKind = PlanKind.CANARY
    has_baseline: StrictBool = Field(
        title="Baseline",
        default=False,
        description="Run a same-size baseline of stable with the same traffic and compare the candidate "
        "with it. Doubles the candidate's GPU cost.",
    )
    guards: PlanGuards = Field(default_factory=PlanGuards)
    analysis: AnalysisSettings = Field(default_factory=AnalysisSettings)
    quality: Mapping[QualityMetric, Annotated[StrictFloat, Field(ge=0, le=1)] | None] = Field(
        default_factory=dict,
        description="limits of label_drift, output_length, structured_failures, embedding_drift and "
        "disagreement, 0 to 1; null switches one off",
    )
    # Empty: none.
    move_alias: str = Field(
        title="Move alias", default="", max_length=60, description="Set after promotion."
    )
    drain_seconds: StrictInt = Field(
        title="Drain time",
        default=DRAIN_SECONDS,
        ge=DRAIN_SECONDS,
        le=_LONGEST_DRAIN_SECONDS,
        description="Pods of the replaced revision stay this long to finish open requests.",
    )

    watch_seconds: StrictInt = Field(
        title="Watch",
        default=WATCH_SECONDS,
        ge=0,
        le=_LONGEST_WATCH_SECONDS,
        description="Keep checking after promotion and roll back automatically on failure. 0 turns this off.",
    )
    # None in a template; a request has its default filled in.
    warmup_seconds: int | None = Field(
        title="Warm-up",
        strict=True,
        default=None,
        ge=0,
        le=LONGEST_WARMUP_SECONDS,
        description="Ignore latency, queue time and throughput for this long after a pod's first request. "
        f"Default: the model's load time, or {DEFAULT_WARMUP_SECONDS} s if it is not known.",
    )

    @field_validator("has_baseline")
    @classmethod
    def _check_baseline(cls, value: Any, info: ValidationInfo) -> Any:
        if value and info.data.get("kind") in (PlanKind.BLUE_GREEN, PlanKind.SHADOW):
            raise ValueError(baseline.ONLY_CANARY)
        return value

    @field_validator("move_alias")
    @classmethod
    def _check_alias(cls, alias: str) -> str:
        if alias and (problem := model_names.alias_problem(alias)):
            raise ValueError(problem)
        return alias

    @property
    def is_shadow(self) -> bool:
        return self.kind == PlanKind.SHADOW

    @property
    def quality_limits(self) -> dict[QualityMetric, float | None]:
        return {name: self.quality.get(name, kind.default) for name, kind in QUALITY.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the plan without its steps, which have a column of their own."""
        left_out = {"steps"} if self.quality else {"steps", "quality"}
        return self.model_dump(mode="json", exclude=left_out)


class RolloutPlan(PlanSettings):
    """The settings and the steps. No steps: the candidate takes over as soon as it is ready."""

    steps: tuple[Step, ...] = ()

    @field_validator("steps")
    @classmethod
    def _check_steps(cls, steps: tuple[Step, ...], info: ValidationInfo) -> tuple[Step, ...]:
        """Check that weights increase within 1 to 100. Promotion after the last step ends with 100."""
        if info.data.get("kind") == PlanKind.BLUE_GREEN:
            return _check_zero_traffic(steps)
        if len(steps) > _MOST_STEPS:
            raise ValueError(_count_of_steps())
        for number, step in enumerate(steps, start=1):
            _check_step(number, step)
        weights = [step.weight for step in steps]
        if weights != sorted(set(weights)):
            raise ValueError(f"The weights {weights} must increase with each step.")
        if info.data.get("has_baseline") and (problem := baseline.problem_with(weights)):
            raise ValueError(problem)
        if info.data.get("kind") == PlanKind.SHADOW and steps and steps[-1].auto_promote:
            raise ValueError(
                "The last step of a shadow needs manual promotion, because the candidate serves "
                "users afterwards."
            )
        return steps

    @property
    def watched_seconds(self) -> int:
        """A revision that takes over as soon as it is ready goes back to one that served before."""
        return self.watch_seconds if self.steps else 0

    def with_steps(self, steps: tuple[Step, ...]) -> Self:
        return self.model_copy(update={"steps": steps})

    def steps_to_json(self) -> list[dict[str, Any]]:
        return [step.to_json() for step in self.steps]


def check(plan: Any, steps: Any) -> RolloutPlan:
    """Read the plan of a request. Raises Rejected with the path of each wrong field."""
    if not isinstance(plan, Mapping) or "steps" in plan or not isinstance(steps, list):
        raise Rejected("A plan is an object, and steps are a list.", {"plan": "not a plan"})
    try:
        checked = RolloutPlan.model_validate({**plan, "steps": steps})
    except ValidationError as error:
        raise _rejected(error) from error
    if not checked.steps:
        raise Rejected(_count_of_steps(), {"steps": _count_of_steps()})
    return checked


def read_stored(plan: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> RolloutPlan:
    """Read the two columns of a row, parsed once: most plans of a list are alike."""
    return _parse(json.dumps({**plan, "steps": steps}))


@functools.lru_cache(maxsize=1024)
def _parse(text: str) -> RolloutPlan:
    return RolloutPlan.model_validate(json.loads(text))


def _rejected(error: ValidationError) -> Rejected:
    """Return the errors with paths as they are on the wire: without the tags of the union of guards."""
    fields = {
        ".".join(part for part in path.split(".") if part not in guard_set.TAGS): message
        for path, message in rejection_of(error, RolloutPlan).fields.items()
    }
    return Rejected(next(iter(fields.values())), fields)


def _count_of_steps() -> str:
    return f"Enter 1 to {_MOST_STEPS} steps, for example 5, 25, 50 and 100%."


def _check_zero_traffic(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    if not steps:
        return (ZERO_TRAFFIC_STEP,)
    if len(steps) > 1:
        raise ValueError(_ONE_STEP)
    if steps[0].weight or steps[0].min_requests or steps[0].auto_promote:
        raise ValueError(f"{_ONE_STEP} It gets no requests and needs manual promotion.")
    _check_deadline(1, steps[0])
    return steps


def _check_step(number: int, step: Step) -> None:
    if step.weight == 0:
        raise ValueError(f"weight of step {number} must be a whole number 1 to 100.")
    if step.auto_promote and step.min_requests < _LEAST_REQUESTS_FOR_AUTO:
        raise ValueError(
            f"Step {number} is promoted automatically and needs min_requests of at least "
            f"{_LEAST_REQUESTS_FOR_AUTO}."
        )
    _check_deadline(number, step)


def _check_deadline(number: int, step: Step) -> None:
    least = step.soak_seconds + _LEAST_AFTER_SOAK_SECONDS
    if step.deadline_seconds is not None and step.deadline_seconds < least:
        raise ValueError(
            f"deadline_seconds of step {number} must be a whole number {least} (its soak time "
            f"and a minute) to {2 * LONGEST_SOAK_SECONDS}."
        )
