"""vLLM, by its own server or LLMInferenceService; the backend of Triton exports the same histograms."""

from __future__ import annotations

from typing import Final

from deployments.alerts.domain.kinds import queue_depth
from portal.monitoring import promql
from portal.monitoring.promql import API_ERRORS, SERVED, VLLM, by_deployment
from portal.monitoring.rules import any_server
from portal.monitoring.rules.any_server import WHAT, WINDOW
from portal.monitoring.rules.rule import AlertRule, Group, Severity

_PODS: Final = promql.match_pods()
_QUEUE_SECONDS: Final = 5
_CACHE_FULL: Final = 0.95


def _sum(function: str, metric: str, where: str) -> str:
    return by_deployment("sum", f"{function}({metric}{{{where},{_PODS}}}[{WINDOW}])")


def _failed(function: str) -> str:
    """A refused request is an error of HTTP only, a stream that broke one of the engine only."""
    http = _sum(function, f"{VLLM.responses.name}_total", API_ERRORS)
    engine = _sum(function, f"{VLLM.finished}_total", 'finished_reason="error"')
    return promql.larger(http, engine)


def _errors() -> AlertRule:
    return any_server.errors(
        alert="SlipwayVllmErrors",
        server="vLLM",
        failed=_failed("rate"),
        served=_sum("rate", f"{VLLM.finished}_total", SERVED),
        count=_failed("increase"),
    )


def _queue() -> AlertRule:
    return any_server.queue(alert="SlipwayVllmQueue", waiting=f"{VLLM.waiting}{{{_PODS}}}")


def _queue_time() -> AlertRule:
    buckets = by_deployment("sum", f"rate({VLLM.queue}_bucket{{{_PODS}}}[{WINDOW}])", extra="le")
    return AlertRule(
        name="SlipwayVllmQueueTime",
        expr=f"histogram_quantile(0.95, {buckets}) > {_QUEUE_SECONDS}",
        hold="10m",
        severity=Severity.WARNING,
        summary=f"{WHAT} makes requests wait",
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
        summary=f"{WHAT} has a full KV cache",
        description="{{ $value | humanizePercentage }} of the KV cache is used: requests wait, or are preempted and computed again.",
        advice="Request more replicas, a GPU with more memory or a shorter context.",
    )


def group() -> Group:
    return Group("slipway-vllm", (_errors(), _queue(), _queue_time(), _cache_full()))
