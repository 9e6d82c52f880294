"""Guards on a percentile of latency, from histograms: what the file of each states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.guards.domain.families.protocol import Reads

SOURCE: Final = "histograms in the cluster's Prometheus"
IGNORE_BELOW_MS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileKind:
    """At most 1 - `quantile` of the requests may take longer than a limit in milliseconds."""

    name: str
    label: str
    quantile: float
    unit: str = "ms"
    source: str = SOURCE
    reads: Reads = Reads.HISTOGRAM
    ignore_below: float | None = IGNORE_BELOW_MS
    has_ratio: bool = True
    has_max: bool = True

    @property
    def describe_test(self) -> str:
        return "share of slow requests, at each bound"
