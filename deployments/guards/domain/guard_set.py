"""The guards of a plan are one list; each family of guards has limits of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    RootModel,
    Tag,
    field_validator,
    model_validator,
)

from deployments.guards.domain import catalogue
from deployments.guards.domain import limits as guard_limits
from deployments.guards.domain.answers.answer_metrics import QUALITY
from deployments.guards.domain.evidence import RECEIVED, SPLITS
from deployments.guards.domain.families.protocol import Reads
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.guards.domain.promql import QueryGuard

_MOST_GUARDS: Final = 16
# Each is queried at every reading.
_MOST_QUERIES: Final = 6
# The limits of a guard, by what it reads.
LIMITS: Final[Mapping[Reads, type[BaseModel]]] = {
    Reads.SERVER: GuardLimit,
    Reads.GATEWAY: GuardLimit,
    Reads.HISTOGRAM: PercentileGuard,
    Reads.QUERY: QueryGuard,
}
_COUNTER, _PERCENTILE, _QUERY = "counter guard", "percentile guard", "query guard"
_TAGS: Final[Mapping[type[BaseModel], str]] = {
    GuardLimit: _COUNTER,
    PercentileGuard: _PERCENTILE,
    QueryGuard: _QUERY,
}
# Tags stand in the path of an error between the index and the field.
TAGS: Final = tuple(_TAGS.values())


def _taken() -> set[str]:
    """Return the names that no query may have, because lines of evidence are distinguished by them."""
    others = (*SPLITS, RECEIVED, "Golden answers", "Answers before traffic")
    labels = [kind.label for kind in catalogue.KINDS if kind.reads != Reads.QUERY]
    answers = [kind.label for kind in QUALITY.values()]
    return {name.lower() for name in (*others, *labels, *answers)}


def _tag_of(guard: Any) -> str:
    """Return the tag of the union below. An unknown metric is refused as that of a counter."""
    metric = guard.get("metric") if isinstance(guard, Mapping) else getattr(guard, "metric", None)
    reads = next((kind.reads for kind in catalogue.KINDS if kind.name == metric), Reads.SERVER)
    return _TAGS[LIMITS[reads]]


AnyLimits = GuardLimit | PercentileGuard | QueryGuard
_Tagged = Annotated[
    Annotated[GuardLimit, Tag(_COUNTER)]
    | Annotated[PercentileGuard, Tag(_PERCENTILE)]
    | Annotated[QueryGuard, Tag(_QUERY)],
    Discriminator(_tag_of),
]


class PlanGuards(RootModel[tuple[_Tagged, ...]]):
    """The guards of a plan. `limits` are on counters of the server or of the gateway, `percentiles` and `queries`
    on the cluster's Prometheus.
    """

    model_config = ConfigDict(frozen=True)

    root: tuple[_Tagged, ...] = guard_limits.DEFAULTS

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
        names, taken = [guard.name.lower() for guard in self.queries], _taken()
        for name in names:
            if names.count(name) > 1 or name in taken:
                raise ValueError(f"The name {name} is taken: give each promql guard its own.")
        return self

    def reading(self, source: Reads) -> tuple[AnyLimits, ...]:
        """Return the guards whose numbers come from the source."""
        return tuple(guard for guard in self.root if guard.kind.reads == source)

    @property
    def listed(self) -> tuple[AnyLimits, ...]:
        """The guards by family, as the form has them."""
        return (*self.limits, *self.percentiles, *self.queries)

    @property
    def limits(self) -> tuple[GuardLimit, ...]:
        return tuple(guard for guard in self.root if isinstance(guard, GuardLimit))

    @property
    def server_limits(self) -> tuple[GuardLimit, ...]:
        return tuple(limit for limit in self.limits if limit.kind.reads == Reads.SERVER)

    @property
    def gateway_limits(self) -> tuple[GuardLimit, ...]:
        return tuple(limit for limit in self.limits if limit.kind.reads == Reads.GATEWAY)

    @property
    def percentiles(self) -> tuple[PercentileGuard, ...]:
        return tuple(guard for guard in self.root if isinstance(guard, PercentileGuard))

    @property
    def queries(self) -> tuple[QueryGuard, ...]:
        return tuple(guard for guard in self.root if isinstance(guard, QueryGuard))

    @property
    def tests(self) -> int:
        """The number of tests that share alpha. A dry run decides nothing."""
        return sum(guard.tests for guard in self.root if not guard.dry_run)

    @property
    def is_prometheus_needed(self) -> bool:
        return bool(self.percentiles or self.queries)

    @property
    def has_readings(self) -> bool:
        """Whether something but the server's own counters is read."""
        return self.is_prometheus_needed or bool(self.gateway_limits)

    @property
    def names(self) -> list[str]:
        """The guards' names for a sentence: in lower case, but a query keeps the name that its author gave it."""
        return [
            guard.label if isinstance(guard, QueryGuard) else guard.label.lower()
            for guard in self.listed
        ]
