"""Counters of model servers: increases between readings, and statistics of them.

Missing is not zero: without observed time every value is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import pairwise
from operator import add, attrgetter, sub

from fleet.gpus.domain.intervals import milliseconds
from fleet.telemetry.domain import histograms
from fleet.telemetry.domain.histograms import Histogram

_SOURCES = {
    "triton": "Triton busy time",
    "llm": "busy time of the language model server",
    "nvml": "GPU utilisation",
    "dcgm": "GPU utilisation",
}
# Readings further apart than this do not say when the requests between them happened.
LONGEST_GAP = timedelta(minutes=5)
# The counters of a pod that became ready less than this before its first reading started at zero.
FRESH = timedelta(seconds=60)


def source_label(source: str) -> str:
    return _SOURCES.get(source, source)


@dataclass(frozen=True, slots=True)
class CounterSums:
    """Sums or increases; times in microseconds. Those of tokens are of language models only."""

    request_success: int = 0
    request_failure: int = 0
    inference_count: int = 0
    execution_count: int = 0
    request_duration_us: int = 0
    queue_duration_us: int = 0
    compute_input_us: int = 0
    compute_infer_us: int = 0
    compute_output_us: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    # Requests with a first token, and the sum of their times until it.
    first_tokens: int = 0
    first_token_us: int = 0
    # Tokens after the first, and the sum of the times between two.
    later_tokens: int = 0
    later_token_us: int = 0
    preemptions: int = 0
    # Neither served nor failed: the client left before the end.
    request_aborted: int = 0

    def __add__(self, other: CounterSums) -> CounterSums:
        return CounterSums(*map(add, _values(self), _values(other)))

    def increase_from(self, earlier: CounterSums) -> CounterSums:
        """Return the increase since another reading. Counters that decreased were reset by a restart, so all of
        them count from zero.
        """
        differences = tuple(map(sub, _values(self), _values(earlier)))
        return self if min(differences) < 0 else CounterSums(*differences)

    def is_less_than(self, other: CounterSums) -> bool:
        """Whether any of them is."""
        differences = tuple(map(sub, _values(self), _values(other)))
        return any(difference < 0 for difference in differences)


COUNTER_NAMES = tuple(field.name for field in fields(CounterSums))
# A tuple of all counters, because a sweep adds up tens of thousands.
_values: Callable[[CounterSums], tuple[int, ...]] = attrgetter(*COUNTER_NAMES)


@dataclass(frozen=True, slots=True)
class PodReading:
    """One reading of one pod's model server. `running_requests` and `kv_cache_usage`, 0..1, are those of
    a language model.
    """

    at: datetime
    counters: CounterSums
    gpu_utilisation: float | None = None
    pending_requests: int | None = None
    request_p95_us: float | None = None
    gpu_memory_used_mib: int | None = None
    running_requests: int | None = None
    kv_cache_usage: float | None = None
    first_token_times: Histogram | None = None
    # In which it was written among those of the pod; 0: not known.
    order: int = 0


@dataclass(frozen=True, slots=True)
class Increase:
    """The increase of one pod's counters up to `at`. During `busy_ms` of `observed_ms` a model executed or,
    where measured, the GPU was busy.
    """

    at: datetime
    counters: CounterSums
    observed_ms: int
    busy_ms: int
    busy_source: str
    first_token_times: Histogram | None = None


def increases(readings: Sequence[PodReading], *, ready_at: datetime | None) -> list[Increase]:
    """Return the increases between consecutive readings of one pod, in order of time.

    The first reading counts in full only if the pod had just become ready: otherwise it includes requests from
    before the observation.
    """
    result: list[Increase] = []
    ordered = _without_future(sorted(readings, key=lambda reading: reading.at))
    if ordered and ready_at is not None and ready_at <= ordered[0].at <= ready_at + FRESH:
        first = ordered[0]
        span = max(0, milliseconds(first.at) - milliseconds(ready_at))
        result.append(_increase(first, first.counters, first.first_token_times, span))
    for before, after in pairwise(ordered):
        span = milliseconds(after.at) - milliseconds(before.at)
        observed = span if after.at - before.at <= LONGEST_GAP else 0
        counters = after.counters.increase_from(before.counters)
        result.append(_increase(after, counters, _first_tokens_between(before, after), observed))
    return result


def _without_future(ordered: Sequence[PodReading]) -> list[PodReading]:
    """Drop the readings that were written before the clock was set back. They are less than what was read since,
    which is not a restart of the server.
    """
    kept: list[PodReading] = []
    for reading in ordered:
        is_earlier = bool(kept) and reading.order < kept[-1].order
        if not (is_earlier and reading.counters.is_less_than(kept[-1].counters)):
            kept.append(reading)
    return kept


def _first_tokens_between(before: PodReading, after: PodReading) -> Histogram | None:
    if after.first_token_times is None:
        return None
    return histograms.increase(before.first_token_times or {}, after.first_token_times)


def _increase(
    reading: PodReading, counters: CounterSums, first_tokens: Histogram | None, observed_ms: int
) -> Increase:
    if reading.gpu_utilisation is not None:
        busy, source = round(reading.gpu_utilisation * observed_ms), "nvml"
    else:
        busy = min(observed_ms, _executed_us(counters) // 1000)
        source = "triton" if reading.running_requests is None else "llm"
    return Increase(reading.at, counters, observed_ms, busy, source, first_tokens)


def _executed_us(counters: CounterSums) -> int:
    """Triton adds the time of an execution to `compute_infer_us` for each request in its batch, so the
    sum counts a batch as often as it has requests. What an executed request has of it on average is the
    time of one execution, exactly where executions last alike. Requests that the response cache
    answered are no inferences. Servers that count no executions add their time once.
    """
    executed = min(counters.request_success, counters.inference_count)
    if not counters.execution_count or not executed:
        return counters.compute_infer_us
    each_us = counters.compute_infer_us / executed
    return min(counters.compute_infer_us, round(each_us * counters.execution_count))


@dataclass(frozen=True, slots=True)
class LanguageStats:
    """Tokens of a language model. None is not known; `kv_cache_usage`, 0..1, is that of the fullest pod."""

    prompt_tokens: int
    generation_tokens: int
    prompt_tokens_per_second: float | None
    generation_tokens_per_second: float | None
    time_to_first_token_ms: float | None
    time_to_first_token_p95_ms: float | None
    inter_token_ms: float | None
    kv_cache_usage: float | None
    running_requests: int | None
    preemptions: int


@dataclass(frozen=True, slots=True)
class ServingStats:
    """Over the last `seconds`, summed over the pods. Latencies are means of successful requests.
    `language` is that of language models, None for others.

    None is not known: no time was observed, or the divisor is 0. `p95_ms` is that of the slowest pod,
    never a mean of percentiles; `p95_source` names its source.
    """

    seconds: int
    requests_per_second: float | None
    error_ratio: float | None
    mean_latency_ms: float | None
    queue_ms: float | None
    input_ms: float | None
    compute_ms: float | None
    output_ms: float | None
    mean_batch_size: float | None
    p95_ms: float | None
    p95_source: str
    busy_ratio: float | None
    busy_source: str
    pending_requests: int | None
    success: int
    failure: int
    inferences: int
    pods: int
    latest_at: datetime | None
    language: LanguageStats | None = None


def total(increases: Iterable[Increase]) -> CounterSums:
    return CounterSums(*map(sum, zip(*(_values(one.counters) for one in increases), strict=True)))


def first_token_p95_ms(increases: Iterable[Increase]) -> float | None:
    times = histograms.total(
        increase.first_token_times for increase in increases if increase.first_token_times
    )
    seconds = histograms.quantile(times, 0.95)
    return None if seconds is None else seconds * 1000


def mean_ms(microseconds: int, requests: int) -> float | None:
    return microseconds / requests / 1000 if requests else None


def ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
