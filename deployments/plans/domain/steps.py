"""A step of a rollout plan: a traffic weight, its soak time and the requests that it needs."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

LONGEST_SOAK_SECONDS: Final = 7 * 24 * 3600


class Step(BaseModel):
    """The weight of a shadow is the percentage of requests that are mirrored to the candidate.

    Rules that need the other steps or the kind of the plan are in `rollout_plan`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", title="RolloutStep")

    weight: StrictInt = Field(
        title="Traffic weight",
        ge=0,
        le=100,
        description="percent of requests routed to the candidate; for a shadow: mirrored to it",
    )
    soak_seconds: StrictInt = Field(title="Soak", ge=0, le=LONGEST_SOAK_SECONDS)
    min_requests: StrictInt = Field(title="Min requests", ge=0, le=10_000_000)
    # Approved with the plan: the step is promoted without another decision.
    auto_promote: StrictBool = Field(
        title="Auto-promote",
        default=False,
        description="promoted automatically when all guards pass",
    )
    # Counted from entering the step.
    deadline_seconds: int | None = Field(
        title="Abort after",
        strict=True,
        default=None,
        le=2 * LONGEST_SOAK_SECONDS,
        description="the rollout is aborted if the step is not promoted by then",
    )

    def to_json(self) -> dict[str, Any]:
        return self.model_dump()


# Blue/green: no traffic until a person promotes fully.
ZERO_TRAFFIC_STEP: Final = Step(weight=0, soak_seconds=0, min_requests=0)
