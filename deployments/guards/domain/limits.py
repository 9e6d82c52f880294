"""Guards on counters of the server and of the gateway: a metric, its limit, and what it is relative to.

A limit is absolute (`max`, in the metric's unit), relative to the stable revision (`max_ratio`),
or both; each has its own test. Three times nothing is still nothing: a relative limit ignores an
error rate below `ignore_below`, and a time that is longer than stable's by less than that. Left out,
an error rate below 0.5% or twice stable's is ignored, whichever is lower (`rates`).
"""

from __future__ import annotations

from typing import Any, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    ValidationInfo,
    field_validator,
    model_validator,
)

from deployments.guards.domain import catalogue
from deployments.guards.domain.families.counters import CounterKind

MAX_RATIO: Final = 1000.0


class GuardLimit(BaseModel):
    """A guard of a metric that counters give: a max, a max_ratio or both."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    metric: str
    max: float | None = Field(strict=True, default=None, description="in the metric's unit")
    max_ratio: float | None = Field(
        strict=True, default=None, ge=1, le=MAX_RATIO, description="relative to the stable revision"
    )
    # Left out or null: the default of the metric.
    ignore_below: float | None = Field(
        strict=True,
        default=None,
        validate_default=True,
        ge=0,
        description="max_ratio is ignored below this value; null: for error_rate the lower of 0.005 "
        "and twice stable's, for times 2 ms, for inter_token_latency 1 ms",
    )
    dry_run: StrictBool = Field(
        title="Dry run",
        default=False,
        description="judged and shown, but neither aborts the rollout nor blocks promotion",
    )

    @field_validator("metric", mode="before")
    @classmethod
    def _check_metric(cls, value: object) -> object:
        if value not in [kind.name for kind in catalogue.counter_kinds()]:
            known = ", ".join(catalogue.names())
            raise ValueError(f"A guard has a metric ({known}) and a max, a max_ratio or both.")
        return value

    @field_validator("ignore_below", mode="before")
    @classmethod
    def _default_floor(cls, value: object, info: ValidationInfo) -> object:
        if value is not None:
            return value
        # Without a metric its own error is enough.
        if "metric" not in info.data:
            return 0.0
        return catalogue.counter_kind(info.data["metric"]).ignore_below

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        metric, kind = self.metric, self.kind
        if self.max_ratio is not None and kind.not_compared:
            raise ValueError(
                f"{metric} is not compared with stable: {kind.not_compared}. "
                "Give a max, not a max_ratio."
            )
        if self.max is not None and not kind.has_max:
            raise ValueError(f"{metric} is compared with the stable revision: give a max_ratio.")
        if self.tests == 0:
            raise ValueError(f"The guard {metric} needs a max, a max_ratio or both.")
        if self.max is not None and not 0 < self.max <= kind.most:
            raise ValueError(f"max of {metric} must be more than 0 and at most {kind.most:g}.")
        if kind.is_rate and self.max == 1:
            raise ValueError(f"A max of 1 for {metric} would allow every request to fail.")
        # Half of the range at most: a floor at the top would switch the ratio off without notice.
        if (self.ignore_below or 0.0) > kind.most / 2:
            raise ValueError(f"ignore_below of {metric} must be at most {kind.most / 2:g}.")
        return self

    @property
    def kind(self) -> CounterKind:
        return catalogue.counter_kind(self.metric)

    @property
    def label(self) -> str:
        return self.kind.label

    @property
    def source(self) -> str:
        return self.kind.source

    @property
    def tests(self) -> int:
        return (self.max is not None) + (self.max_ratio is not None)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


DEFAULTS: Final[tuple[GuardLimit, ...]] = tuple(
    GuardLimit(metric=kind.name, max_ratio=kind.default_ratio)
    for kind in catalogue.counter_kinds()
    if kind.default_ratio is not None
)
# How long a whole answer of a language model takes is mostly how long the answer is.
DEFAULTS_OF_TOKENS: Final[tuple[GuardLimit, ...]] = tuple(
    GuardLimit(metric=kind.name, max_ratio=kind.default_ratio_of_tokens)
    for kind in catalogue.counter_kinds()
    if kind.default_ratio_of_tokens is not None
)
