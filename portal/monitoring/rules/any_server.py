"""Rules that are the same for every model server, made from its own metrics."""

from __future__ import annotations

from typing import Final

from deployments.alerts.domain.kinds import queue_depth
from portal.monitoring.promql import by_deployment
from portal.monitoring.rules.rule import AlertRule, Severity

WINDOW: Final = "5m"
WHAT: Final = "{{ $labels.namespace }}/{{ $labels.deployment }} {{ $labels.revision }}"
_ERROR_RATIO: Final = 0.05
# Fewer failures in five minutes are no reason to act.
_LEAST_FAILURES: Final = 5


def errors(*, alert: str, server: str, failed: str, served: str, count: str) -> AlertRule:
    """`failed` and `served` are requests a second, `count` the failures in WINDOW, each by deployment."""
    return AlertRule(
        name=alert,
        expr=f"{failed} / ({failed} + {served}) > {_ERROR_RATIO} and {count} >= {_LEAST_FAILURES}",
        hold="5m",
        severity=Severity.WARNING,
        summary=f"{WHAT} answers with errors",
        description="{{ $value | humanizePercentage }} of its requests failed in 5 minutes.",
        advice=f"Abort a running canary or roll back; the log of the pod has {server}'s message.",
    )


def queue(*, alert: str, waiting: str) -> AlertRule:
    """`waiting` is a gauge with its matchers."""
    by_pod = f"sum by (cluster, namespace, pod) ({waiting})"
    return AlertRule(
        name=alert,
        expr=f"{by_deployment('min', by_pod)} >= {queue_depth.OPENS_AT}",
        hold="5m",
        severity=Severity.WARNING,
        summary=f"{WHAT} has waiting requests in every replica",
        description="At least {{ $value }} requests wait in each replica.",
        advice=queue_depth.KIND.advice,
    )
