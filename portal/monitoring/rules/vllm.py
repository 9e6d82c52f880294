"""vLLM, by its own server or LLMInferenceService; the backend of Triton exports the same gauges and histograms."""

from __future__ import annotations

from typing import Final

from deployments.alerts.domain.kinds import queue_depth
from portal.monitoring import promql
from portal.monitoring.promql import API_ERRORS, SERVED, VLLM, by_deployment
from portal.monitoring.rules.rule import AlertRule, Group, Severity

_PODS: Final = promql.pods_of()
_WINDOW: Final = "5m"
_ERROR_RATIO: Final = 0.05
_LEAST_FAILURES: Final = 5
_QUEUE_SECONDS: Final = 5
_CACHE_FULL: Final = 0.95
_WHAT: Final = "{{ $labels.namespace }}/{{ $labels.deployment }} {{ $labels.revision }}"


def _sum(function: str, metric: str, where: str) -> str:
    return by_deployment("sum", f"{function}({metric}{{{where},{_PODS}}}[{_WINDOW}])")


def _failed(function: str) -> str:
    """A refused request is an error of HTTP only, a stream that broke one of the engine only."""
    http = _sum(function, f"{VLLM.responses.name}_total", API_ERRORS)
    engine = _sum(function, f"{VLLM.finished}_total", 'finished_reason="error"')
    return promql.larger(http, engine)


def _errors() -> AlertRule:
    failed, served = _failed("rate"), _sum("rate", f"{VLLM.finished}_total", SERVED)
    ratio = f"{failed} / ({failed} + {served}) > {_ERROR_RATIO}"
    return AlertRule(
        name="SlipwayVllmErrors",
        expr=f"{ratio} and {_failed('increase')} >= {_LEAST_FAILURES}",
        hold="5m",
        severity=Severity.WARNING,
        summary=f"{_WHAT} answers with errors",
        description="{{ $value | humanizePercentage }} of its requests failed in 5 minutes.",
        advice="Abort a running canary or roll back; the log of the pod has vLLM's message.",
    )


def _queue() -> AlertRule:
    waiting = f"sum by (cluster, namespace, pod) ({VLLM.waiting}{{{_PODS}}})"
    return AlertRule(
        name="SlipwayVllmQueue",
        expr=f"{by_deployment('min', waiting)} >= {queue_depth.OPENS_AT}",
        hold="5m",
        severity=Severity.WARNING,
        summary=f"{_WHAT} has a queue in every replica",
        description="At least {{ $value }} requests wait in each replica.",
        advice=queue_depth.KIND.advice,
    )


def _queue_time() -> AlertRule:
    buckets = by_deployment("sum", f"rate({VLLM.queue}_bucket{{{_PODS}}}[{_WINDOW}])", extra="le")
    return AlertRule(
        name="SlipwayVllmQueueTime",
        expr=f"histogram_quantile(0.95, {buckets}) > {_QUEUE_SECONDS}",
        hold="10m",
        severity=Severity.WARNING,
        summary=f"{_WHAT} lets requests wait",
        description="One request of twenty waits longer than {{ $value | humanizeDuration }} before it starts.",
        advice=queue_depth.KIND.advice,
    )


def _cache_full() -> AlertRule:
    named = " or ".join(f"{name}{{{_PODS}}}" for name in VLLM.cache_usage)
    return AlertRule(
        name="SlipwayVllmCacheFull",
        expr=f"{by_deployment('max', f'({named})')} > {_CACHE_FULL}",
        hold="10m",
        severity=Severity.WARNING,
        summary=f"{_WHAT} has no room in its KV cache",
        description="{{ $value | humanizePercentage }} of the KV cache is used: requests wait, or are preempted and computed again.",
        advice="Request more replicas, a GPU with more memory or a shorter context.",
    )


def group() -> Group:
    return Group("slipway-vllm", (_errors(), _queue(), _queue_time(), _cache_full()))
