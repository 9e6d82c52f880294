"""The 95th percentile of latency."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.families.percentiles import PercentileKind

KIND: Final = PercentileKind(name="latency_p95", label="Latency p95", quantile=0.95)
