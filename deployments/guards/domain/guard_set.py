"""The guards of a plan are one list; each kind is measured and tested in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.errors import Rejected
from deployments.guards.domain import limits as guard_limits
from deployments.guards.domain import percentiles as guard_percentiles
from deployments.guards.domain import promql
from deployments.guards.domain.answer_verdicts import TITLES
from deployments.guards.domain.evidence import SPLITS
from deployments.guards.domain.limits import KINDS, GuardLimit
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.guards.domain.promql import QueryGuard

_MOST_GUARDS: Final = 16
# Each is asked at every reading.
_MOST_QUERIES: Final = 6
# Evidence is told apart by the names of its lines.
_TAKEN: Final = frozenset(
    name.lower()
    for name in (
        *SPLITS,
        *(kind.label for kind in KINDS.values()),
        *guard_percentiles.LABELS.values(),
        *TITLES.values(),
        "Golden answers",
        "Disagreement with stable",
        "Answers before traffic",
    )
)


@dataclass(frozen=True, slots=True)
class PlanGuards:
    """`limits` are of counters, `percentiles` and `queries` of the cluster's Prometheus."""

    limits: tuple[GuardLimit, ...] = guard_limits.DEFAULTS
    percentiles: tuple[PercentileGuard, ...] = ()
    queries: tuple[QueryGuard, ...] = ()

    @property
    def tests(self) -> int:
        """That share alpha; queries have no test."""
        limits = sum(limit.tests for limit in self.limits)
        return limits + sum(guard.tests for guard in self.percentiles)

    @property
    def is_prometheus_needed(self) -> bool:
        return bool(self.percentiles or self.queries)

    def to_json(self) -> list[dict[str, Any]]:
        limits = [limit.to_json() for limit in self.limits]
        percentiles = [guard.to_json() for guard in self.percentiles]
        return [*limits, *percentiles, *(guard.to_json() for guard in self.queries)]


def check(rows: Any) -> PlanGuards:
    """Raises Rejected unless each can be tested, and is there once."""
    is_list = isinstance(rows, Sequence) and not isinstance(rows, str)
    if not is_list or len(rows) > _MOST_GUARDS:
        raise _bad(f"Give a list of at most {_MOST_GUARDS} guards.")
    counted, percentiles, queries = _sorted_out(rows)
    found = PlanGuards(
        limits=guard_limits.check(counted),
        percentiles=tuple(guard_percentiles.check(row) for row in percentiles),
        queries=tuple(promql.check(row) for row in queries),
    )
    if len({guard.metric for guard in found.percentiles}) != len(found.percentiles):
        raise _bad("Guard each percentile once.")
    _check_names(found.queries)
    return found


def from_json(rows: Sequence[Mapping[str, Any]]) -> PlanGuards:
    counted, percentiles, queries = _sorted_out(rows)
    return PlanGuards(
        limits=guard_limits.from_json(counted),
        percentiles=tuple(guard_percentiles.from_json(row) for row in percentiles),
        queries=tuple(promql.from_json(row) for row in queries),
    )


def names_of(found: PlanGuards) -> list[str]:
    """As a line of words has them; a query keeps the name that people gave it."""
    counted = [KINDS[limit.metric].label.lower() for limit in found.limits]
    percentiles = [guard.label[0].lower() + guard.label[1:] for guard in found.percentiles]
    return [*counted, *percentiles, *(guard.name for guard in found.queries)]


def _sorted_out(rows: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    found: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for row in rows:
        metric = row.get("metric") if isinstance(row, Mapping) else None
        is_text = isinstance(metric, str)
        is_percentile = is_text and metric in guard_percentiles.QUANTILES
        found[1 if is_percentile else 2 if metric == promql.METRIC else 0].append(row)
    return found


def _check_names(queries: Sequence[QueryGuard]) -> None:
    if len(queries) > _MOST_QUERIES:
        raise _bad(f"At most {_MOST_QUERIES} promql guards.")
    names = [guard.name.lower() for guard in queries]
    for name in names:
        if names.count(name) > 1 or name in _TAKEN:
            raise _bad(f"The name {name} is taken: give each promql guard its own.")


def _bad(words: str) -> Rejected:
    return Rejected(words, {"guards": words})
