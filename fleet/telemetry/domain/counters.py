"""Counters of model servers: increases between readings, and statistics of them.

Missing is not zero: without observed time every value is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import pairwise

from fleet.gpus.domain.intervals import milliseconds

_SOURCES = {
    "triton": "Triton busy time",
    "vllm": "time with requests in vLLM",
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
class Counters:
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

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(getattr(self, n) + getattr(other, n) for n in COUNTER_NAMES))

    def increase_from(self, earlier: Counters) -> Counters:
        """Counters that decreased were reset by a restart, so all of them count from zero."""
        pairs = [(getattr(earlier, n), getattr(self, n)) for n in COUNTER_NAMES]
        if any(new < old for old, new in pairs):
            return self
        return Counters(*(new - old for old, new in pairs))


COUNTER_NAMES = tuple(field.name for field in fields(Counters))


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of one pod's model server. `running_requests` and `kv_cache_usage`, 0..1, are vLLM's."""

    at: datetime
    counters: Counters
    gpu_utilisation: float | None = None
    pending_requests: int | None = None
    request_p95_us: float | None = None
    gpu_memory_used_mib: int | None = None
    running_requests: int | None = None
    kv_cache_usage: float | None = None


@dataclass(frozen=True, slots=True)
class Increase:
    """The increase of one pod's counters up to `at`. During `busy_ms` of `observed_ms` a model executed or,
    where measured, the GPU was busy.
    """

    at: datetime
    counters: Counters
    observed_ms: int
    busy_ms: int
    busy_source: str


def increases(readings: Sequence[Reading], *, ready_at: datetime | None) -> list[Increase]:
    """Between consecutive readings of one pod, in order of time.

    The first reading counts in full only when the pod had just become ready: otherwise it includes
    requests from before the observation.
    """
    result: list[Increase] = []
    ordered = sorted(readings, key=lambda reading: reading.at)
    if ordered and ready_at is not None and ready_at <= ordered[0].at <= ready_at + FRESH:
        first = ordered[0]
        span = max(0, milliseconds(first.at) - milliseconds(ready_at))
        result.append(_increase(first, first.counters, span))
    for before, after in pairwise(ordered):
        span = milliseconds(after.at) - milliseconds(before.at)
        observed = span if after.at - before.at <= LONGEST_GAP else 0
        result.append(_increase(after, after.counters.increase_from(before.counters), observed))
    return result


def _increase(reading: Reading, counters: Counters, observed_ms: int) -> Increase:
    if reading.gpu_utilisation is not None:
        busy, source = round(reading.gpu_utilisation * observed_ms), "nvml"
    else:
        busy = min(observed_ms, counters.compute_infer_us // 1000)
        source = "triton" if reading.running_requests is None else "vllm"
    return Increase(reading.at, counters, observed_ms, busy, source)


@dataclass(frozen=True, slots=True)
class LanguageStats:
    """Tokens of a language model. None is not known; `kv_cache_usage`, 0..1, is that of the fullest pod."""

    prompt_tokens: int
    generation_tokens: int
    prompt_tokens_per_second: float | None
    generation_tokens_per_second: float | None
    time_to_first_token_ms: float | None
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


def total(increases: Iterable[Increase]) -> Counters:
    result = Counters()
    for increase in increases:
        result += increase.counters
    return result


def mean_ms(microseconds: int, requests: int) -> float | None:
    return microseconds / requests / 1000 if requests else None


def ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
