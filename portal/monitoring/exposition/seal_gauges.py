"""The gauges of sealing: hours of the cost ledger and events of the audit trail."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from fleet.costs.selectors import sealed_hours
from portal.audit import sealing


def collect() -> Iterator[Metric]:
    ledger = GaugeMetricFamily(
        "slipway_ledger_sealed_timestamp_seconds",
        "The end of the last hour of the cost ledger that is sealed.",
        labels=["cluster"],
    )
    for cluster, end in sealed_hours.last_ends():
        ledger.add_metric([cluster], end.timestamp())
    yield ledger
    head = sealing.head()
    if head is not None:
        yield GaugeMetricFamily(
            "slipway_audit_sealed_timestamp_seconds",
            "When an event was last added to the chain of the audit trail.",
            value=head.sealed_at.timestamp(),
        )
    oldest = sealing.oldest_unsealed_at()
    if oldest is not None:
        yield GaugeMetricFamily(
            "slipway_audit_unsealed_timestamp_seconds",
            "When the oldest event that is not in the chain yet was written; without it all are.",
            value=oldest.timestamp(),
        )
