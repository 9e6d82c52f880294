"""Triton's own counters, of all models that a pod serves together."""

from __future__ import annotations

from typing import Final

from deployments.alerts.domain.kinds import queue_depth
from portal.monitoring import promql
from portal.monitoring.promql import by_deployment
from portal.monitoring.rules import any_server
from portal.monitoring.rules.any_server import WHAT, WINDOW
from portal.monitoring.rules.rule import AlertRule, Group, Severity

_WHERE: Final = "{" + promql.match_pods() + "}"
_QUEUE_SHARE: Final = 0.5
_QUEUE_SECONDS: Final = 0.1


def _rate(metric: str) -> str:
    return by_deployment("sum", f"rate({metric}{_WHERE}[{WINDOW}])")


def _errors() -> AlertRule:
    increase = f"increase(nv_inference_request_failure{_WHERE}[{WINDOW}])"
    return any_server.errors(
        alert="SlipwayTritonErrors",
        server="Triton",
        failed=_rate("nv_inference_request_failure"),
        served=_rate("nv_inference_request_success"),
        count=by_deployment("sum", increase),
    )


def _queue() -> AlertRule:
    waiting = f"nv_inference_pending_request_count{_WHERE}"
    return any_server.queue(alert="SlipwayTritonQueue", waiting=waiting)


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
        summary=f"{WHAT} makes requests wait longer than it processes them",
        description="Requests spend {{ $value | humanizePercentage }} of their time in the queue, more than 0.1 s each.",
        advice=queue_depth.KIND.advice,
    )


def group() -> Group:
    return Group("slipway-triton", (_errors(), _queue(), _queue_time()))
