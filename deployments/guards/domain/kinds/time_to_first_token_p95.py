"""The 95th percentile of the time to first token: how long the slowest answers take to begin."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.families.percentiles import Measure, PercentileKind

KIND: Final = PercentileKind(
    name="time_to_first_token_p95",
    label="Time to first token p95",
    quantile=0.95,
    measure=Measure.TTFT,
)
