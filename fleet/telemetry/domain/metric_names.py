"""The metrics of servers of language models, by what they measure.

Read from the sources of vLLM 0.6 to 0.11 (vllm/v1/metrics/loggers.py), of SGLang 0.5.10 to 0.5.23
(sglang/srt/observability) and of TensorRT-LLM 1.1 to 1.3 (tensorrt_llm/metrics/collector.py). Counters are
named without `_total`. Where a release renamed a metric, the first name that a page has is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Responses:
    """The counter of HTTP responses, and its labels for the path (empty: it has none) and for the status."""

    name: str
    path: str
    status: str


@dataclass(frozen=True, slots=True)
class MetricNames:
    """The metric names of one server. `first_token`, `later_token`, `whole_request` and `queue` are histograms in
    seconds, `compute` are sums in seconds, `cache_usage` is 0..1. `sign` is in each of its pages. An empty name
    means that the server does not count it.
    """

    server: str
    sign: str
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
    sign="vllm:",
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
    sign="sglang:",
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
# Named as in 1.2, which counts the five that follow `finished` and no tokens; releases after it put this before
# each name, and have the others.
LATER_TENSORRT_LLM: Final = "trtllm_"
TENSORRT_LLM: Final = MetricNames(
    server="TensorRT-LLM",
    sign="e2e_request_latency_seconds",
    prefix="",
    finished="request_success",
    responses=Responses("request_error", path="", status="http_code"),
    running="num_requests_running",
    waiting="num_requests_waiting",
    cache_usage=("kv_cache_utilization",),
    prompt_tokens="prompt_tokens",
    generation_tokens="generation_tokens",
    preemptions="",
    first_token=("time_to_first_token_seconds",),
    later_token=("time_per_output_token_seconds",),
    whole_request="e2e_request_latency_seconds",
    queue="request_queue_time_seconds",
    compute=("request_inference_time_seconds_sum",),
)
# In the order in which a page is recognised: the signs of the first two are in no page of the third.
SERVERS: Final = (VLLM, SGLANG, TENSORRT_LLM)


def sample_names(names: MetricNames) -> frozenset[str]:
    """Return all samples that are read of a server's page, as they are called there."""
    compute = (name for name in names.compute if not name.endswith("_sum"))
    counters = (
        *(names.finished, names.responses.name, names.preemptions),
        *(names.prompt_tokens, names.generation_tokens, *compute),
    )
    gauges = (names.running, names.waiting, *names.cache_usage)
    sums = (names.whole_request, names.queue, *names.first_token, *names.later_token)
    samples = {
        *gauges,
        *(name for name in names.compute if name.endswith("_sum")),
        *(f"{name}_total" for name in counters if name),
        *(f"{name}_{part}" for name in sums for part in ("sum", "count")),
        *(f"{name}_bucket" for name in names.first_token),
    }
    if names is TENSORRT_LLM:
        samples |= {f"{LATER_TENSORRT_LLM}{name}" for name in samples}
    return frozenset(samples)
