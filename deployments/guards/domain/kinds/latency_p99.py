"""The 99th percentile of latency."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.families.percentiles import PercentileKind

KIND: Final = PercentileKind(name="latency_p99", label="Latency p99", quantile=0.99)
