"""The recorded figures of the stable revision, for when it gets no requests any more.

At 100% there is no stable side to compare with. A relative limit is then an absolute one: what it
allows beside the highest figure that stable showed in a block of the time before. The highest, not
the mean, because what changes for both sides, such as the load of the day, no longer cancels out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Self

from deployments.guards.domain import catalogue, sequential_tests
from deployments.guards.domain.betting import rates
from deployments.guards.domain.counters import NO_SUMS, SideFacts, Sums
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.families.percentiles import Measure
from deployments.guards.domain.families.protocol import Reads
from deployments.guards.domain.histograms import Counts, bucket_of
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.percentiles import PercentileGuard

# The figure of a block with fewer requests is mostly chance.
_LEAST_REQUESTS: Final = 100
# An error ratio that is always allowed cannot be tested.
_MOST_ERRORS: Final = 0.99
NOT_RECORDED: Final = (
    "the stable revision no longer gets requests, and none were recorded in the hour before"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """The recorded figures of stable: the `highest` of each metric, in its unit, and `histograms` in milliseconds
    by what they count.
    """

    until: datetime | None = None
    requests: int = 0
    highest: Mapping[str, float] = field(default_factory=dict)
    histograms: Mapping[Measure, Counts] = field(default_factory=dict)

    def histogram(self, measure: Measure) -> Counts:
        return self.histograms.get(measure, {})

    def to_json(self) -> dict[str, Any]:
        return {
            "until": self.until.isoformat() if self.until else None,
            "requests": self.requests,
            "highest": dict(self.highest),
            "histograms": {
                measure: {repr(bound): count for bound, count in counts.items()}
                for measure, counts in self.histograms.items()
            },
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        if not stored:
            return cls()
        until = stored["until"]
        return cls(
            until=datetime.fromisoformat(until) if until else None,
            requests=stored["requests"],
            highest=stored["highest"],
            histograms={
                Measure(measure): {float(bound): count for bound, count in counts.items()}
                for measure, counts in stored["histograms"].items()
            },
        )


def build_reference(
    blocks: Sequence[Sums],
    facts: SideFacts,
    *,
    histograms: Mapping[Measure, Counts],
    until: datetime,
) -> Reference:
    """Build the reference from the counts of stable in consecutive blocks of time."""
    merged = _merged(blocks)
    values = {
        kind.name: [value for sums in merged if (value := kind.value(sums, facts)) is not None]
        for kind in catalogue.counter_kinds()
        if kind.reads == Reads.SERVER
    }
    return Reference(
        until=until,
        requests=sum(sums.requests for sums in blocks),
        highest={metric: max(of_metric) for metric, of_metric in values.items() if of_metric},
        histograms=histograms,
    )


def _merged(blocks: Sequence[Sums]) -> list[Sums]:
    """Merge neighbours until each block has enough requests; what is left over joins the last."""
    merged: list[Sums] = []
    waiting = NO_SUMS
    for sums in blocks:
        waiting += sums
        if waiting.requests >= _LEAST_REQUESTS:
            merged.append(waiting)
            waiting = NO_SUMS
    if not waiting.requests:
        return merged
    return [*merged[:-1], merged[-1] + waiting] if merged else [waiting]


def absolute(limit: GuardLimit, reference: Reference) -> GuardLimit | None:
    """Return the limit without a comparison. None if nothing of it can be tested."""
    if limit.max_ratio is None:
        return limit
    most = _most(limit, reference)
    known = [value for value in (limit.max, most) if value is not None]
    if not known:
        return None
    return limit.model_copy(update={"max": min(known), "max_ratio": None})


def absolute_percentile(guard: PercentileGuard, reference: Reference) -> PercentileGuard | None:
    """Return the guard without a comparison: beside the upper bound of the bucket in which stable's percentile lay.

    None if nothing of it can be tested.
    """
    if guard.max_ratio is None:
        return guard
    bucket = bucket_of(reference.histogram(guard.kind.measure), guard.kind.quantile)
    known = [] if guard.max is None else [guard.max]
    if bucket is not None and bucket[1] != float("inf"):
        known.append(guard.allowed_beside(bucket[1]))
    if not known:
        return None
    return guard.model_copy(update={"max": min(known), "max_ratio": None})


def describe_result(result: GuardResult, limit: GuardLimit, reference: Reference) -> GuardResult:
    """Return the result of an absolute limit, with what stable showed and where the limit comes from."""
    value = reference.highest.get(limit.metric)
    if limit.max_ratio is None:
        return replace(result, stable="")
    most = _most(limit, reference)
    if value is None or most is None:
        return replace(result, stable="not recorded")
    sign = "≥" if limit.kind.is_inverse else "≤"
    parts = [] if limit.max is None else [f"≤ {limit.kind.format(limit.max)}"]
    parts.append(f"{sign} {limit.kind.format(most)} ({limit.max_ratio:g} times before)")
    stable = f"{limit.kind.format(value)} before"
    return replace(result, stable=stable, limit=" and ".join(parts))


def not_recorded(guard: GuardLimit | PercentileGuard) -> GuardResult:
    """Return the result of a relative limit without anything to compare with."""
    return GuardResult(
        guard=guard.label,
        stable="not recorded",
        candidate="",
        limit="",
        n=None,
        verdict=Verdict.NOT_ENOUGH,
        message=NOT_RECORDED,
        source=guard.source,
    )


def _most(limit: GuardLimit, reference: Reference) -> float | None:
    value = reference.highest.get(limit.metric)
    if value is None or limit.max_ratio is None or not limit.kind.is_rate:
        return None if value is None else sequential_tests.most_of(limit, value)
    # Nothing of stable is left to be twice of, so the default floor is the fixed one.
    floor = rates.FLOOR if limit.ignore_below is None else limit.ignore_below
    return min(max(limit.max_ratio * value, floor), _MOST_ERRORS)
