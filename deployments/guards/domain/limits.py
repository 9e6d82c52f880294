"""Guards on counters of the server and of the gateway: a metric, its limit, and what it is relative to.

A limit is absolute (`max`, in the metric's unit), relative to the stable revision (`max_ratio`),
or both; each has its own test. Three times nothing is still nothing: a relative limit ignores an
error rate below `ignore_below`, and a time that is longer than stable's by less than that. Left out,
an error rate below 0.5% or twice stable's is ignored, whichever is lower (`rates`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
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


class Metric(StrEnum):
    ERROR_RATE = "error_rate"
    LOST_REQUESTS = "lost_requests"
    LATENCY_MEAN = "latency_mean"
    QUEUE_TIME = "queue_time"
    GPU_UTILISATION = "gpu_utilisation"
    GPU_MEMORY = "gpu_memory"
    THROUGHPUT_PER_GPU = "throughput_per_gpu"
    COST_PER_1000 = "cost_per_1000"


@dataclass(frozen=True, slots=True)
class MetricKind:
    """`most` is the highest limit of a plan; `ignore_below` the default floor of its ratio, None for
    that of rates.
    """

    label: str
    unit: str
    source: str
    most: float
    ignore_below: float | None = 0.0
    # A metric that depends on the traffic weight cannot be compared with the stable revision.
    has_ratio: bool = True
    # Where less is worse, the tests use the GPU time of one inference instead.
    has_max: bool = True


# Triton's counters give means only; percentiles come from histograms (`percentiles`).
KINDS: Final[Mapping[Metric, MetricKind]] = {
    Metric.ERROR_RATE: MetricKind(
        "Error ratio", "ratio", "Triton request counters", most=1.0, ignore_below=None
    ),
    Metric.LOST_REQUESTS: MetricKind(
        "Lost requests", "ratio", "gateway counters", most=1.0, ignore_below=None
    ),
    Metric.LATENCY_MEAN: MetricKind(
        "Mean latency", "ms", "Triton counters, mean", most=3_600_000, ignore_below=2.0
    ),
    Metric.QUEUE_TIME: MetricKind(
        "Queue time", "ms", "Triton counters, mean", most=3_600_000, ignore_below=2.0
    ),
    Metric.GPU_UTILISATION: MetricKind(
        "GPU utilisation", "ratio", "Triton busy time", most=1.0, has_ratio=False
    ),
    Metric.GPU_MEMORY: MetricKind(
        "GPU memory", "GiB", "whole GPU, peak", most=4096, has_ratio=False
    ),
    Metric.THROUGHPUT_PER_GPU: MetricKind(
        "Throughput per GPU",
        "/s",
        "inferences per busy GPU second",
        most=1e9,
        has_max=False,
    ),
    Metric.COST_PER_1000: MetricKind(
        "Cost per 1,000", "$", "list price of the busy GPU time", most=1e6
    ),
}
# Rates of requests: each is counted, so their tests need no means of intervals.
COUNTED: Final = (Metric.ERROR_RATE, Metric.LOST_REQUESTS)
# Made of times, which the load and the age of a pod change.
TIMED: Final = frozenset(
    {Metric.LATENCY_MEAN, Metric.QUEUE_TIME, Metric.THROUGHPUT_PER_GPU, Metric.COST_PER_1000}
)
# Metrics whose guards have a module of their own.
_ELSEWHERE: Final = ("latency_p95", "latency_p99", "promql")
MAX_RATIO: Final = 1000.0


class GuardLimit(BaseModel):
    """A guard of a metric that counters give: a max, a max_ratio or both."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    metric: Metric
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
        "and twice stable's, for times 2 ms",
    )
    dry_run: StrictBool = Field(
        title="Dry run",
        default=False,
        description="judged and shown, but neither aborts the rollout nor blocks promotion",
    )

    @field_validator("metric", mode="before")
    @classmethod
    def _check_metric(cls, value: object) -> object:
        if value not in list(Metric):
            known = ", ".join([*Metric, *_ELSEWHERE])
            raise ValueError(f"A guard has a metric ({known}) and a max, a max_ratio or both.")
        return value

    @field_validator("ignore_below", mode="before")
    @classmethod
    def _default_floor(cls, value: object, info: ValidationInfo) -> object:
        if value is not None:
            return value
        # Without a metric its own error is enough.
        return KINDS[info.data["metric"]].ignore_below if "metric" in info.data else 0.0

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        metric, kind = self.metric, KINDS[self.metric]
        if self.max_ratio is not None and not kind.has_ratio:
            raise ValueError(
                f"{metric} depends on the traffic weight: give a max, not a max_ratio."
            )
        if self.max is not None and not kind.has_max:
            raise ValueError(f"{metric} is compared with the stable revision: give a max_ratio.")
        if self.tests == 0:
            raise ValueError(f"The guard {metric} needs a max, a max_ratio or both.")
        if self.max is not None and not 0 < self.max <= kind.most:
            raise ValueError(f"max of {metric} must be more than 0 and at most {kind.most:g}.")
        if metric in COUNTED and self.max == 1:
            raise ValueError(f"A max of 1 for {metric} would allow every request to fail.")
        # Half of the range at most: a floor at the top would switch the ratio off without notice.
        if (self.ignore_below or 0.0) > kind.most / 2:
            raise ValueError(f"ignore_below of {metric} must be at most {kind.most / 2:g}.")
        return self

    @property
    def tests(self) -> int:
        return (self.max is not None) + (self.max_ratio is not None)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


DEFAULTS: Final[tuple[GuardLimit, ...]] = tuple(
    GuardLimit(metric=metric, max_ratio=1.25)
    for metric in (Metric.ERROR_RATE, Metric.LOST_REQUESTS, Metric.LATENCY_MEAN)
)
