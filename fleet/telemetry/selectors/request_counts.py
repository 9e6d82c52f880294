"""The sums of what some pods counted in a period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fleet.telemetry.domain import histograms
from fleet.telemetry.domain.counters import Increase, total
from fleet.telemetry.domain.histograms import Histogram


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """The request counts of some pods. `observed_ms` is pod time; 0 with 0 requests means not known, not idle.

    Of the pod time, `busy_ms` were spent executing. The sums of durations are over successes.
    """

    success: int
    failure: int
    inferences: int
    observed_ms: int
    latest_at: datetime | None
    duration_us: int = 0
    queue_us: int = 0
    busy_ms: int = 0
    # When counting starts: the last reading before the requested time, or the start of a new pod.
    begins_at: datetime | None = None
    # Of language models: requests whose client left, tokens, and the times of the first and of later ones.
    aborted: int = 0
    tokens: int = 0
    first_tokens: int = 0
    first_token_us: int = 0
    later_tokens: int = 0
    later_token_us: int = 0
    # Seconds until the first token, cumulated by bound; empty where the server has no such histogram.
    first_token_times: Histogram = field(default_factory=dict)


def sum_increases(
    observed: Sequence[Increase], *, latest_at: datetime | None, begins_at: datetime | None
) -> RequestCounts:
    """Sum increases, which may be those of several pods."""
    counters = total(observed)
    times = [increase.first_token_times for increase in observed if increase.first_token_times]
    return RequestCounts(
        success=counters.request_success,
        failure=counters.request_failure,
        inferences=counters.inference_count,
        observed_ms=sum(increase.observed_ms for increase in observed),
        latest_at=latest_at,
        duration_us=counters.request_duration_us,
        queue_us=counters.queue_duration_us,
        busy_ms=sum(increase.busy_ms for increase in observed),
        begins_at=begins_at,
        aborted=counters.request_aborted,
        tokens=counters.generation_tokens,
        first_tokens=counters.first_tokens,
        first_token_us=counters.first_token_us,
        later_tokens=counters.later_tokens,
        later_token_us=counters.later_token_us,
        first_token_times=histograms.total(times),
    )
