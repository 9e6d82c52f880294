"""A team's own query on the cluster's Prometheus: one number, with the name that its author gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.guards.domain.families.protocol import Protects, Reads


@dataclass(frozen=True, slots=True)
class QueryKind:
    """A plan may have several; each row has a label, a query and limits in its own unit."""

    name: str = "promql"
    label: str = "PromQL"
    unit: str = ""
    source: str = "PromQL, the cluster's Prometheus"
    reads: Reads = Reads.QUERY
    protects: Protects = Protects.OWN

    @property
    def describe_test(self) -> str:
        return "consecutive breaches"


KIND: Final = QueryKind()
