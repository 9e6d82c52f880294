"""What a rollout plan guards: a metric, how much of it is allowed, and against what.

A limit is absolute (`max`, in the metric's unit), relative to the stable revision (`max_ratio`),
or both; each is tested by itself. Three times nothing is still nothing: a relative limit ignores an
error rate below `ignore_below`, and a time that is longer than stable's by less than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from deployments.errors import Rejected


class Metric(StrEnum):
    ERROR_RATE = "error_rate"
    LATENCY_MEAN = "latency_mean"
    QUEUE_TIME = "queue_time"
    GPU_UTILISATION = "gpu_utilisation"
    GPU_MEMORY = "gpu_memory"
    THROUGHPUT_PER_GPU = "throughput_per_gpu"
    COST_PER_1000 = "cost_per_1000"


@dataclass(frozen=True, slots=True)
class MetricKind:
    """`most` bounds what a plan may ask for; `ignore_below` is the default floor of its ratio."""

    label: str
    unit: str
    source: str
    most: float
    ignore_below: float = 0.0
    # What a share of traffic changes by itself cannot be compared with the stable revision.
    has_ratio: bool = True
    # Where less is worse, the tests look at the GPU time of one inference instead.
    has_max: bool = True


# Triton's counters give means only; percentiles come from histograms (percentile_guards).
KINDS: Final[Mapping[Metric, MetricKind]] = {
    Metric.ERROR_RATE: MetricKind(
        "Error ratio", "ratio", "Triton request counters", most=1.0, ignore_below=0.005
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
        "GPU memory", "GiB", "whole GPU, most seen", most=4096, has_ratio=False
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
# Guards that have a module of their own.
_ELSEWHERE: Final = ("latency_p95", "latency_p99", "promql")
_MOST_GUARDS: Final = 12
_MOST_RATIO: Final = 1000.0
_FIELDS: Final = frozenset({"metric", "max", "max_ratio", "ignore_below"})


@dataclass(frozen=True, slots=True)
class GuardLimit:
    metric: Metric
    max: float | None = None
    max_ratio: float | None = None
    ignore_below: float = 0.0

    @property
    def tests(self) -> int:
        return (self.max is not None) + (self.max_ratio is not None)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


DEFAULTS: Final[tuple[GuardLimit, ...]] = tuple(
    GuardLimit(metric, max_ratio=1.25, ignore_below=KINDS[metric].ignore_below)
    for metric in (Metric.ERROR_RATE, Metric.LATENCY_MEAN)
)


def check(rows: Any) -> tuple[GuardLimit, ...]:
    """Raises Rejected unless each is a known metric with at least one limit, each metric once."""
    if not isinstance(rows, Sequence) or isinstance(rows, str) or len(rows) > _MOST_GUARDS:
        raise _bad(f"Give a list of at most {_MOST_GUARDS} guards.")
    found = tuple(_check_one(row) for row in rows)
    names = [limit.metric for limit in found]
    if len(set(names)) != len(names):
        raise _bad("Guard each metric once.")
    return found


def from_json(rows: Sequence[Mapping[str, Any]]) -> tuple[GuardLimit, ...]:
    return tuple(GuardLimit(**{**row, "metric": Metric(row["metric"])}) for row in rows)


def _check_one(row: Any) -> GuardLimit:
    if not isinstance(row, Mapping) or not set(row) <= _FIELDS or row.get("metric") not in KINDS:
        known = ", ".join([*KINDS, *_ELSEWHERE])
        raise _bad(f"A guard has a metric ({known}) and a max, a max_ratio or both.")
    metric = Metric(row["metric"])
    kind = KINDS[metric]
    limit = GuardLimit(
        metric,
        max=_number(row, "max", above=0, most=kind.most),
        max_ratio=_number(row, "max_ratio", above=1, most=_MOST_RATIO),
        ignore_below=_floor(row, kind),
    )
    _check_fitting(limit, kind)
    if limit.tests == 0:
        raise _bad(f"The guard {metric} needs a max, a max_ratio or both.")
    if metric == Metric.ERROR_RATE and limit.max == 1:
        raise _bad("A max of 1 for error_rate would allow every request to fail.")
    return limit


def _check_fitting(limit: GuardLimit, kind: MetricKind) -> None:
    if limit.max_ratio is not None and not kind.has_ratio:
        raise _bad(f"{limit.metric} depends on the share of requests: give a max, not a max_ratio.")
    if limit.max is not None and not kind.has_max:
        raise _bad(f"{limit.metric} is compared with the stable revision: give a max_ratio.")


def _floor(row: Mapping[str, Any], kind: MetricKind) -> float:
    if row.get("ignore_below") is None:
        return kind.ignore_below
    # Half of the range at most: a floor at the top would switch the ratio off unseen.
    found = _number(row, "ignore_below", above=0, most=kind.most / 2)
    return 0.0 if found is None else found


def _number(row: Mapping[str, Any], name: str, *, above: float, most: float) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not above <= value <= most:
        raise _bad(f"{name} of {row['metric']} must be a number {above:g} to {most:g}.")
    if value == 0 and name == "max":
        raise _bad(f"max of {row['metric']} must be more than 0: any single one would exceed it.")
    return float(value)


def _bad(words: str) -> Rejected:
    return Rejected(words, {"guards": words})
