"""The metrics of servers of language models, by what they measure.

Read from the sources of vLLM 0.6 to 0.11 (vllm/v1/metrics/loggers.py) and of SGLang 0.5.10 to 0.5.23
(sglang/srt/observability). Counters are named without `_total`. Where a release renamed a metric, the
first name that a page has is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Responses:
    """The counter of HTTP responses, and its labels for the path and for the status."""

    name: str
    path: str
    status: str


@dataclass(frozen=True, slots=True)
class MetricNames:
    """Of one server. `first_token`, `later_token`, `whole_request` and `queue` are histograms in seconds,
    `compute` are sums in seconds, `cache_usage` is 0..1.
    """

    server: str
    prefix: str
    finished: str
    responses: Responses
    running: str
    waiting: str
    cache_usage: Names
    prompt_tokens: str
    generation_tokens: str
    preemptions: str
    first_token: Names
    later_token: Names
    whole_request: str
    queue: str
    compute: Names


VLLM: Final = MetricNames(
    server="vLLM",
    prefix="vllm:",
    finished="vllm:request_success",
    responses=Responses("http_requests", path="handler", status="status"),
    running="vllm:num_requests_running",
    waiting="vllm:num_requests_waiting",
    cache_usage=("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    prompt_tokens="vllm:prompt_tokens",
    generation_tokens="vllm:generation_tokens",
    preemptions="vllm:num_preemptions",
    first_token=("vllm:time_to_first_token_seconds",),
    later_token=("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    whole_request="vllm:e2e_request_latency_seconds",
    queue="vllm:request_queue_time_seconds",
    compute=("vllm:request_inference_time_seconds_sum",),
)
SGLANG: Final = MetricNames(
    server="SGLang",
    prefix="sglang:",
    # Without a reason: a request whose client left after it ran counts as finished.
    finished="sglang:num_requests",
    responses=Responses("sglang:http_responses", path="endpoint", status="status_code"),
    running="sglang:num_running_reqs",
    waiting="sglang:num_queue_reqs",
    cache_usage=("sglang:token_usage",),
    prompt_tokens="sglang:prompt_tokens",
    generation_tokens="sglang:generation_tokens",
    # It calls a preempted request retracted.
    preemptions="sglang:num_retracted_requests",
    first_token=("sglang:time_to_first_token_seconds",),
    later_token=("sglang:inter_token_latency_seconds",),
    whole_request="sglang:e2e_request_latency_seconds",
    queue="sglang:queue_time_seconds",
    # GPU time of forward passes; counted with SGLANG_ENABLE_METRICS_DEVICE_TIMER.
    compute=("sglang:forward_execution_seconds", "sglang:gpu_execution_seconds"),
)
SERVERS: Final = (VLLM, SGLANG)
