"""Guards on a percentile of a time, from histograms: what the file of each states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from deployments.guards.domain.families.protocol import Protects, Reads

SOURCE: Final = "histograms in the cluster's Prometheus"
IGNORE_BELOW_MS: Final = 2.0


class Measure(StrEnum):
    """The quantity that a histogram counts: whole answers, or parts of those of language models."""

    LATENCY = "latency"
    TTFT = "time-to-first-token"
    ITL = "inter-token-latency"

    @property
    def noun(self) -> str:
        """The unit of a trial. `ITL` counts the pauses between tokens, not the answers."""
        return "tokens" if self is Measure.ITL else "requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileKind:
    """A guard on a percentile: at most 1 - `quantile` of what is counted may take longer than a limit in
    milliseconds.
    """

    name: str
    label: str
    quantile: float
    measure: Measure = Measure.LATENCY
    unit: str = "ms"
    source: str = SOURCE
    reads: Reads = Reads.HISTOGRAM
    ignore_below: float | None = IGNORE_BELOW_MS
    not_compared: str = ""
    has_max: bool = True
    protects: Protects = Protects.SPEED

    @property
    def is_of_tokens(self) -> bool:
        """Whether only servers of language models have it."""
        return self.measure != Measure.LATENCY

    @property
    def describe_test(self) -> str:
        return f"share of slow {self.measure.noun}, at each bound"
