"""Deployments on Triton and vLLM."""

from __future__ import annotations

from typing import Final

from portal.monitoring import promql
from portal.monitoring.dashboards.dashboard import Dashboard, Panel, Query, Row, Variable
from portal.monitoring.promql import API_ERRORS, SERVED, VLLM, by_deployment

_PODS: Final = 'cluster=~"$cluster",namespace=~"$namespace",' + promql.match_pods(
    "${deployment:regex}"
)
_RANGE: Final = "[$__rate_interval]"
_LEGEND: Final = "{{namespace}}/{{deployment}} {{revision}}"
_SUCCESS: Final = "nv_inference_request_success"
_POD_LABELS: Final = f'{{__name__=~"{_SUCCESS}|{VLLM.waiting}",cluster=~"$cluster"'


def _rate(metric: str, where: str = "", *, extra: str = "") -> str:
    matchers = f"{where},{_PODS}" if where else _PODS
    return by_deployment("sum", f"rate({metric}{{{matchers}}}{_RANGE})", extra=extra)


def _one(title: str, unit: str, expr: str, description: str = "") -> Panel:
    return Panel(title, unit, (Query(expr, _LEGEND),), description)


def dashboard() -> Dashboard:
    in_namespace = f'{_POD_LABELS},namespace=~"$namespace"}}'
    return Dashboard(
        uid="slipway-serving",
        title="Slipway: model serving",
        variables=(
            Variable("cluster", "Cluster", f"label_values({_SUCCESS}, cluster)"),
            Variable("namespace", "Namespace", f"label_values({_POD_LABELS}}}, namespace)"),
            Variable(
                "deployment",
                "Deployment",
                f"label_values({in_namespace}, pod)",
                all_value=promql.ANY_DEPLOYMENT,
                regex="/^(.+)-r[0-9]+-.+$/",
            ),
        ),
        rows=(_triton(), _vllm_requests(), _vllm_tokens()),
    )


def _triton() -> Row:
    served, failed = _rate(_SUCCESS), _rate("nv_inference_request_failure")
    duration = _rate("nv_inference_request_duration_us")
    queue = _rate("nv_inference_queue_duration_us")
    pending = by_deployment("sum", f"nv_inference_pending_request_count{{{_PODS}}}")
    batch = f"{_rate('nv_inference_count')} / ({_rate('nv_inference_exec_count')} > 0)"
    quantile = f'nv_inference_request_summary_us{{quantile="0.95",{_PODS}}}'
    return Row(
        "Triton",
        (
            _one("Requests", "reqps", f"{served} + {failed}"),
            _one("Errors", "percentunit", f"{failed} / ({served} + {failed} > 0)"),
            _one("Mean latency", "s", f"{duration} / ({served} > 0) / 1e6"),
            _one(
                "p95 of the slowest replica",
                "s",
                f"{by_deployment('max', quantile)} / 1e6",
                "Where Summary latencies are switched on.",
            ),
            _one("Share of time in the queue", "percentunit", f"{queue} / ({duration} > 0)"),
            _one("Waiting requests", "short", pending),
            _one("Mean batch", "short", batch),
        ),
    )


def _vllm_requests() -> Row:
    http = _rate(f"{VLLM.responses.name}_total", API_ERRORS)
    engine = _rate(f"{VLLM.finished}_total", 'finished_reason="error"')
    failed, served = promql.larger(http, engine), _rate(f"{VLLM.finished}_total", SERVED)
    cache = " or ".join(f"{name}{{{_PODS}}}" for name in VLLM.cache_usage)
    return Row(
        "vLLM: requests",
        (
            _one("Requests", "reqps", f"{served} + {failed}"),
            _one("Errors", "percentunit", f"{failed} / ({served} + {failed} > 0)"),
            Panel(
                "Running and waiting",
                "short",
                (
                    Query(
                        by_deployment("sum", f"{VLLM.running}{{{_PODS}}}"), f"running: {_LEGEND}"
                    ),
                    Query(
                        by_deployment("sum", f"{VLLM.waiting}{{{_PODS}}}"), f"waiting: {_LEGEND}"
                    ),
                ),
            ),
            _one(
                "KV cache of the fullest replica", "percentunit", by_deployment("max", f"({cache})")
            ),
            _one("Queue time, p95", "s", _p95(VLLM.queue)),
            _one("Preemptions", "cps", _rate(f"{VLLM.preemptions}_total")),
        ),
    )


def _vllm_tokens() -> Row:
    return Row(
        "vLLM: tokens",
        (
            _one("Time to first token, p95", "s", _p95(VLLM.first_token[0])),
            _one("Time between tokens, p95", "s", _p95(VLLM.later_token[0])),
            _one("Prompt tokens", "cps", _rate(f"{VLLM.prompt_tokens}_total")),
            _one("Generated tokens", "cps", _rate(f"{VLLM.generation_tokens}_total")),
        ),
    )


def _p95(metric: str) -> str:
    return f"histogram_quantile(0.95, {_rate(f'{metric}_bucket', extra='le')})"
