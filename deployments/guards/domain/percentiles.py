"""Guards of a percentile of latency, tested on the counts of a histogram, in two lanes.

    {"metric": "latency_p95", "max": 50, "max_ratio": 1.25, "ignore_below": 2}

"The 95th percentile is at most 50 ms" says that at most 5% of the requests take longer. Each
request is a trial that did or did not. A histogram knows only its bounds: a limit between two is
tested at the next one above, and the evidence says so. That is never stricter than the plan.
Beside stable the share of slow requests is compared (`slow_share`). `percentile_tests` has the state.
"""

from __future__ import annotations

from typing import Any, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    field_validator,
    model_validator,
)

from deployments.guards.domain import catalogue
from deployments.guards.domain.betting import slow_share
from deployments.guards.domain.families.percentiles import IGNORE_BELOW_MS, PercentileKind
from deployments.guards.domain.histograms import Counts
from deployments.guards.domain.limits import MAX_RATIO

_MOST_MS: Final = 3_600_000


class PercentileGuard(BaseModel):
    """A limit on a percentile. `max` is in milliseconds. A ratio ignores what is above stable by `ignore_below` at
    most.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    metric: str
    max: float | None = Field(strict=True, default=None, gt=0, le=_MOST_MS)
    max_ratio: float | None = Field(strict=True, default=None, ge=1, le=MAX_RATIO)
    # Left out or null: the default.
    ignore_below: StrictFloat = Field(default=IGNORE_BELOW_MS, ge=0, le=_MOST_MS / 2)
    dry_run: StrictBool = Field(
        title="Dry run",
        default=False,
        description="judged and shown, but neither aborts the rollout nor blocks promotion",
    )

    @field_validator("metric")
    @classmethod
    def _check_metric(cls, metric: str) -> str:
        if metric not in [kind.name for kind in catalogue.percentile_kinds()]:
            raise ValueError(f"{metric} is not a percentile of latency.")
        return metric

    @field_validator("ignore_below", mode="before")
    @classmethod
    def _default_floor(cls, value: object) -> object:
        return IGNORE_BELOW_MS if value is None else value

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.tests == 0:
            raise ValueError(f"The guard {self.metric} needs a max, a max_ratio or both.")
        return self

    @property
    def tests(self) -> int:
        return (self.max is not None) + (self.max_ratio is not None)

    @property
    def kind(self) -> PercentileKind:
        return catalogue.percentile_kind(self.metric)

    @property
    def label(self) -> str:
        return self.kind.label

    @property
    def source(self) -> str:
        return self.kind.source

    @property
    def share(self) -> float:
        """The part of the requests that may take longer."""
        return 1 - self.kind.quantile

    def allowed_beside(self, stable_ms: float) -> float:
        return max((self.max_ratio or 1.0) * stable_ms, stable_ms + self.ignore_below)

    def smallest_visible(self, past: Counts, bounds: tuple[float, ...]) -> float | None:
        return slow_share.smallest_visible(
            past,
            bounds,
            ratio=self.max_ratio or 1.0,
            slack_ms=self.ignore_below,
            share=self.share,
        )

    def to_json(self) -> dict[str, Any]:
        return self.model_dump()
