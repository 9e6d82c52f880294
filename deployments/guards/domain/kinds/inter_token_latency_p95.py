"""The 95th percentile of the pauses between tokens: how long an answer stops while it is written."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.families.percentiles import Measure, PercentileKind

KIND: Final = PercentileKind(
    name="inter_token_latency_p95",
    label="Inter-token latency p95",
    quantile=0.95,
    measure=Measure.ITL,
)
