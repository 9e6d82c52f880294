"""The guards of a plan are one list; each kind is measured and tested in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Discriminator, RootModel, Tag, field_validator, model_validator

from deployments.guards.domain import limits as guard_limits
from deployments.guards.domain import percentiles as guard_percentiles
from deployments.guards.domain import promql
from deployments.guards.domain.answer_metrics import QUALITY
from deployments.guards.domain.evidence import RECEIVED, SPLITS
from deployments.guards.domain.limits import KINDS, GuardLimit, Metric
from deployments.guards.domain.percentiles import QUANTILES, PercentileGuard
from deployments.guards.domain.promql import QueryGuard

_MOST_GUARDS: Final = 16
# Each is queried at every reading.
_MOST_QUERIES: Final = 6
# The lines of evidence are distinguished by their names.
_TAKEN: Final = frozenset(
    name.lower()
    for name in (
        *SPLITS,
        RECEIVED,
        *(kind.label for kind in KINDS.values()),
        *guard_percentiles.LABELS.values(),
        *(kind.label for kind in QUALITY.values()),
        "Golden answers",
        "Answers before traffic",
    )
)


def _source_of(guard: Any) -> str:
    """The tag of the union below: which measurement the metric of a guard has."""
    metric = guard.get("metric") if isinstance(guard, Mapping) else getattr(guard, "metric", None)
    if metric == promql.METRIC:
        return "query guard"
    return "percentile guard" if metric in tuple(QUANTILES) else "counter guard"


# Tags stand in the path of an error between the index and the field.
SOURCES: Final = ("counter guard", "percentile guard", "query guard")
AnyGuard = Annotated[
    Annotated[GuardLimit, Tag("counter guard")]
    | Annotated[PercentileGuard, Tag("percentile guard")]
    | Annotated[QueryGuard, Tag("query guard")],
    Discriminator(_source_of),
]


class PlanGuards(RootModel[tuple[AnyGuard, ...]]):
    """`limits` are on counters of the server or of the gateway, `percentiles` and `queries` on the
    cluster's Prometheus.
    """

    model_config = ConfigDict(frozen=True)

    root: tuple[AnyGuard, ...] = guard_limits.DEFAULTS

    @field_validator("root", mode="before")
    @classmethod
    def _check_count(cls, rows: Any) -> Any:
        is_list = isinstance(rows, Sequence) and not isinstance(rows, str)
        if not is_list or len(rows) > _MOST_GUARDS:
            raise ValueError(f"Give a list of at most {_MOST_GUARDS} guards.")
        return rows

    @model_validator(mode="after")
    def _check_duplicates(self) -> Self:
        for guards in (self.limits, self.percentiles):
            if len({guard.metric for guard in guards}) != len(guards):
                raise ValueError("Guard each metric once.")
        if len(self.queries) > _MOST_QUERIES:
            raise ValueError(f"At most {_MOST_QUERIES} promql guards.")
        names = [guard.name.lower() for guard in self.queries]
        for name in names:
            if names.count(name) > 1 or name in _TAKEN:
                raise ValueError(f"The name {name} is taken: give each promql guard its own.")
        return self

    @property
    def limits(self) -> tuple[GuardLimit, ...]:
        return tuple(guard for guard in self.root if isinstance(guard, GuardLimit))

    @property
    def server_limits(self) -> tuple[GuardLimit, ...]:
        return tuple(limit for limit in self.limits if limit not in self.gateway_limits)

    @property
    def gateway_limits(self) -> tuple[GuardLimit, ...]:
        """On what the gateway counts: at most one."""
        return tuple(limit for limit in self.limits if limit.metric == Metric.LOST_REQUESTS)

    @property
    def percentiles(self) -> tuple[PercentileGuard, ...]:
        return tuple(guard for guard in self.root if isinstance(guard, PercentileGuard))

    @property
    def queries(self) -> tuple[QueryGuard, ...]:
        return tuple(guard for guard in self.root if isinstance(guard, QueryGuard))

    @property
    def tests(self) -> int:
        """How many tests share alpha: queries have none, and a dry run decides nothing."""
        limits = sum(limit.tests for limit in self.limits if not limit.dry_run)
        return limits + sum(guard.tests for guard in self.percentiles if not guard.dry_run)

    @property
    def is_prometheus_needed(self) -> bool:
        return bool(self.percentiles or self.queries)

    @property
    def has_readings(self) -> bool:
        """Whether something but the server's own counters is read."""
        return self.is_prometheus_needed or bool(self.gateway_limits)

    @property
    def names(self) -> list[str]:
        """For a sentence: lower case, but a query keeps the name that its author gave it."""
        limits = [KINDS[limit.metric].label.lower() for limit in self.limits]
        percentiles = [guard.label[0].lower() + guard.label[1:] for guard in self.percentiles]
        return [*limits, *percentiles, *(guard.name for guard in self.queries)]
