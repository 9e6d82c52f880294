"""All guards that a plan may have, in the order of the form. A further one is a module in kinds/ and
its line here.
"""

from __future__ import annotations

from typing import Final, TypeVar

from deployments.guards.domain.families.counters import CounterKind
from deployments.guards.domain.families.percentiles import PercentileKind
from deployments.guards.domain.families.protocol import GuardKind
from deployments.guards.domain.kinds import (
    aborted_requests,
    cost_per_1000,
    error_rate,
    gpu_memory,
    gpu_utilisation,
    inter_token_latency,
    inter_token_latency_p95,
    latency_mean,
    latency_p95,
    latency_p99,
    lost_requests,
    promql,
    queue_time,
    throughput_per_gpu,
    time_to_first_token,
    time_to_first_token_p95,
    tokens_per_second,
)

_Kind = TypeVar("_Kind", bound=GuardKind)
KINDS: Final[tuple[GuardKind, ...]] = (
    error_rate.KIND,
    lost_requests.KIND,
    latency_mean.KIND,
    queue_time.KIND,
    gpu_utilisation.KIND,
    gpu_memory.KIND,
    throughput_per_gpu.KIND,
    cost_per_1000.KIND,
    time_to_first_token.KIND,
    inter_token_latency.KIND,
    tokens_per_second.KIND,
    aborted_requests.KIND,
    latency_p95.KIND,
    latency_p99.KIND,
    time_to_first_token_p95.KIND,
    inter_token_latency_p95.KIND,
    promql.KIND,
)


def names() -> list[str]:
    return [kind.name for kind in KINDS]


def counter_kinds() -> tuple[CounterKind, ...]:
    return tuple(kind for kind in KINDS if isinstance(kind, CounterKind))


def percentile_kinds() -> tuple[PercentileKind, ...]:
    return tuple(kind for kind in KINDS if isinstance(kind, PercentileKind))


def counter_kind(name: str) -> CounterKind:
    """Return the guard on counters with this name. Raises LookupError if there is none."""
    return _named(counter_kinds(), name)


def percentile_kind(name: str) -> PercentileKind:
    """Return the guard on a percentile with this name. Raises LookupError if there is none."""
    return _named(percentile_kinds(), name)


def _named(kinds: tuple[_Kind, ...], name: str) -> _Kind:
    for kind in kinds:
        if kind.name == name:
            return kind
    raise LookupError(f"There is no guard {name!r}. There are: {', '.join(names())}.")
