"""Triton's own counters, of all models that a pod serves together."""

from __future__ import annotations

from typing import Final

from deployments.alerts.domain.kinds import queue_depth
from portal.monitoring import promql
from portal.monitoring.promql import by_deployment
from portal.monitoring.rules.rule import AlertRule, Group, Severity

_WHERE: Final = "{" + promql.pods_of() + "}"
_WINDOW: Final = "5m"
_ERROR_RATIO: Final = 0.05
# Fewer failures in five minutes are no reason to act.
_LEAST_FAILURES: Final = 5
_QUEUE_SHARE: Final = 0.5
_QUEUE_SECONDS: Final = 0.1
_WHAT: Final = "{{ $labels.namespace }}/{{ $labels.deployment }} {{ $labels.revision }}"


def _rate(metric: str) -> str:
    return by_deployment("sum", f"rate({metric}{_WHERE}[{_WINDOW}])")


def _errors() -> AlertRule:
    failed, served = (
        _rate("nv_inference_request_failure"),
        _rate("nv_inference_request_success"),
    )
    count = by_deployment("sum", f"increase(nv_inference_request_failure{_WHERE}[{_WINDOW}])")
    return AlertRule(
        name="SlipwayTritonErrors",
        expr=f"{failed} / ({failed} + {served}) > {_ERROR_RATIO} and {count} >= {_LEAST_FAILURES}",
        hold="5m",
        severity=Severity.WARNING,
        summary=f"{_WHAT} answers with errors",
        description="{{ $value | humanizePercentage }} of its requests failed in 5 minutes.",
        advice="Abort a running canary or roll back; the log of the pod has Triton's message.",
    )


def _queue() -> AlertRule:
    pending = f"sum by (cluster, namespace, pod) (nv_inference_pending_request_count{_WHERE})"
    return AlertRule(
        name="SlipwayTritonQueue",
        expr=f"{by_deployment('min', pending)} >= {queue_depth.OPENS_AT}",
        hold="5m",
        severity=Severity.WARNING,
        summary=f"{_WHAT} has a queue in every replica",
        description="At least {{ $value }} requests wait in each replica.",
        advice=queue_depth.KIND.advice,
    )


def _queue_time() -> AlertRule:
    queue = _rate("nv_inference_queue_duration_us")
    whole = _rate("nv_inference_request_duration_us")
    served = _rate("nv_inference_request_success")
    mean = f"{queue} / ({served} > 0) > {_QUEUE_SECONDS * 1e6:.0f}"
    return AlertRule(
        name="SlipwayTritonQueueTime",
        expr=f"{queue} / ({whole} > 0) > {_QUEUE_SHARE} and {mean}",
        hold="10m",
        severity=Severity.WARNING,
        summary=f"{_WHAT} lets requests wait longer than it works on them",
        description="Requests spend {{ $value | humanizePercentage }} of their time in the queue, more than 0.1 s each.",
        advice=queue_depth.KIND.advice,
    )


def group() -> Group:
    return Group("slipway-triton", (_errors(), _queue(), _queue_time()))
