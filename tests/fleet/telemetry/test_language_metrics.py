"""Metrics of vLLM, SGLang and Triton's vLLM backend, read as requests and tokens."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fleet.telemetry.domain import metrics_page
from fleet.telemetry.domain.counters import CounterSums
from fleet.telemetry.domain.language_metrics import LanguagePage, NotLanguageMetrics
from fleet.telemetry.domain.metric_names import SGLANG, VLLM
from fleet.telemetry.domain.triton_metrics import NotTritonMetrics

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
# As vLLM 0.11 exports it: two engines of data parallelism, and what its HTTP server counts.
PAGE = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="chat"} 3.0
vllm:num_requests_running{engine="1",model_name="chat"} 2.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="chat"} 0.0
vllm:num_requests_waiting{engine="1",model_name="chat"} 4.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="chat"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="chat"} 0.75
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="chat"} 1.0
vllm:num_preemptions_total{engine="1",model_name="chat"} 2.0
# TYPE vllm:num_preemptions_created gauge
vllm:num_preemptions_created{engine="0",model_name="chat"} 1.7e+09
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="chat"} 700.0
vllm:prompt_tokens_total{engine="1",model_name="chat"} 300.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="chat"} 400.0
vllm:generation_tokens_total{engine="1",model_name="chat"} 100.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="chat"} 6.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="chat"} 2.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="chat"} 5.0
vllm:request_success_total{engine="1",finished_reason="stop",model_name="chat"} 2.0
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="chat"} 4.0
vllm:iteration_tokens_total_bucket{engine="0",le="+Inf",model_name="chat"} 9.0
vllm:iteration_tokens_total_count{engine="0",model_name="chat"} 9.0
vllm:iteration_tokens_total_sum{engine="0",model_name="chat"} 1500.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="chat"} 2.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="chat"} 10.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="chat"} 10.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="chat"} 2.5
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_bucket{engine="0",le="+Inf",model_name="chat"} 490.0
vllm:inter_token_latency_seconds_count{engine="0",model_name="chat"} 490.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="chat"} 9.8
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_bucket{engine="0",le="+Inf",model_name="chat"} 10.0
vllm:e2e_request_latency_seconds_count{engine="0",model_name="chat"} 10.0
vllm:e2e_request_latency_seconds_sum{engine="0",model_name="chat"} 12.3
# TYPE vllm:request_queue_time_seconds histogram
vllm:request_queue_time_seconds_bucket{engine="0",le="+Inf",model_name="chat"} 10.0
vllm:request_queue_time_seconds_count{engine="0",model_name="chat"} 10.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="chat"} 0.5
# TYPE vllm:request_inference_time_seconds histogram
vllm:request_inference_time_seconds_bucket{engine="0",le="+Inf",model_name="chat"} 10.0
vllm:request_inference_time_seconds_count{engine="0",model_name="chat"} 10.0
vllm:request_inference_time_seconds_sum{engine="0",model_name="chat"} 11.8
# TYPE http_requests_total counter
http_requests_total{handler="/v1/chat/completions",method="POST",status="2xx"} 15.0
http_requests_total{handler="/v1/chat/completions",method="POST",status="4xx"} 7.0
http_requests_total{handler="/v1/chat/completions",method="POST",status="5xx"} 3.0
http_requests_total{handler="none",method="GET",status="5xx"} 99.0
"""
# As SGLang 0.5.10 exports it with tensor parallelism: the forward passes of both GPUs are the same passes.
SGLANG_PAGE = """# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="chat",pp_rank="0",tp_rank="0"} 3.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{engine_type="unified",model_name="chat",pp_rank="0",tp_rank="0"} 4.0
# TYPE sglang:token_usage gauge
sglang:token_usage{engine_type="unified",model_name="chat",pp_rank="0",tp_rank="0"} 0.75
# TYPE sglang:num_retracted_reqs gauge
sglang:num_retracted_reqs{model_name="chat",tp_rank="0"} 9.0
# TYPE sglang:num_retracted_requests_total counter
sglang:num_retracted_requests_total{model_name="chat",tp_rank="0"} 3.0
# TYPE sglang:gpu_execution_seconds_total counter
sglang:gpu_execution_seconds_total{category="extend",model_name="chat",pp_rank="0",tp_rank="0"} 2.5
sglang:gpu_execution_seconds_total{category="decode",model_name="chat",pp_rank="0",tp_rank="0"} 6.0
sglang:gpu_execution_seconds_total{category="extend",model_name="chat",pp_rank="0",tp_rank="1"} 2.5
sglang:gpu_execution_seconds_total{category="decode",model_name="chat",pp_rank="0",tp_rank="1"} 6.0
# TYPE sglang:queue_time_seconds histogram
sglang:queue_time_seconds_bucket{le="+Inf",model_name="chat",tp_rank="0"} 10.0
sglang:queue_time_seconds_count{model_name="chat",tp_rank="0"} 10.0
sglang:queue_time_seconds_sum{model_name="chat",tp_rank="0"} 0.5
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="chat"} 1000.0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="chat"} 500.0
# TYPE sglang:num_requests_total counter
sglang:num_requests_total{model_name="chat"} 10.0
# TYPE sglang:num_aborted_requests_total counter
sglang:num_aborted_requests_total{model_name="chat"} 2.0
# TYPE sglang:time_to_first_token_seconds histogram
sglang:time_to_first_token_seconds_bucket{le="0.1",model_name="chat"} 2.0
sglang:time_to_first_token_seconds_bucket{le="+Inf",model_name="chat"} 10.0
sglang:time_to_first_token_seconds_count{model_name="chat"} 10.0
sglang:time_to_first_token_seconds_sum{model_name="chat"} 2.5
# TYPE sglang:inter_token_latency_seconds histogram
sglang:inter_token_latency_seconds_bucket{le="+Inf",model_name="chat"} 490.0
sglang:inter_token_latency_seconds_count{model_name="chat"} 490.0
sglang:inter_token_latency_seconds_sum{model_name="chat"} 9.8
# TYPE sglang:e2e_request_latency_seconds histogram
sglang:e2e_request_latency_seconds_bucket{le="+Inf",model_name="chat"} 10.0
sglang:e2e_request_latency_seconds_count{model_name="chat"} 10.0
sglang:e2e_request_latency_seconds_sum{model_name="chat"} 12.3
# TYPE sglang:http_responses_total counter
sglang:http_responses_total{endpoint="/v1/chat/completions",method="POST",status_code="200"} 8.0
sglang:http_responses_total{endpoint="/v1/chat/completions",method="POST",status_code="400"} 7.0
sglang:http_responses_total{endpoint="/v1/chat/completions",method="POST",status_code="500"} 2.0
sglang:http_responses_total{endpoint="/v1/completions",method="POST",status_code="503"} 1.0
sglang:http_responses_total{endpoint="/health",method="GET",status_code="503"} 99.0
"""
# Triton's vLLM backend has no gauges, and labels of Triton.
BACKEND = """# TYPE nv_inference_request_success counter
nv_inference_request_success{model="chat",version="1"} 4
# TYPE nv_inference_request_failure counter
nv_inference_request_failure{model="chat",reason="OTHER",version="1"} 1
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{model="chat",version="1"} 10
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model="chat",version="1"} 16
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_count{model="chat",version="1"} 4
vllm:time_to_first_token_seconds_sum{model="chat",version="1"} 0.2
# TYPE vllm:time_per_output_token_seconds histogram
vllm:time_per_output_token_seconds_count{model="chat",version="1"} 12
vllm:time_per_output_token_seconds_sum{model="chat",version="1"} 0.36
"""
TOKENS = CounterSums(
    prompt_tokens=1000,
    generation_tokens=500,
    first_tokens=10,
    first_token_us=2_500_000,
    later_tokens=490,
    later_token_us=9_800_000,
    preemptions=3,
)


def test_requests_times_and_tokens_are_summed_over_the_engines() -> None:
    reading = metrics_page.read(PAGE, models=["ignored"], at=AT)

    assert reading.counters == replace(
        TOKENS,
        # A client that left is neither a success nor a failure.
        request_success=10,
        # Of the API only: the 7 requests that were wrong are not failures of the model.
        request_failure=3,
        request_aborted=5,
        inference_count=10,
        request_duration_us=12_300_000,
        queue_duration_us=500_000,
        compute_infer_us=11_800_000,
    )
    assert (reading.running_requests, reading.pending_requests) == (5, 4)
    # The fullest engine preempts first.
    assert reading.kv_cache_usage == 0.75


def test_sglang_is_read_under_its_own_names() -> None:
    reading = metrics_page.read(SGLANG_PAGE, models=["ignored"], at=AT)

    assert reading.counters == replace(
        TOKENS,
        request_success=10,
        # Of the API only, and not the 7 requests that were wrong.
        request_failure=3,
        inference_count=10,
        request_duration_us=12_300_000,
        queue_duration_us=500_000,
        # GPU time of one of the two GPUs.
        compute_infer_us=8_500_000,
    )
    assert (reading.running_requests, reading.pending_requests) == (3, 4)
    assert reading.kv_cache_usage == 0.75


# As TensorRT-LLM 1.2 exports it at /prometheus/metrics: five metrics, and nothing before the first request.
TENSORRT_LLM_PAGE = """# TYPE e2e_request_latency_seconds histogram
e2e_request_latency_seconds_bucket{engine_type="undefined",le="0.3",model_name="undefined"} 2.0
e2e_request_latency_seconds_bucket{engine_type="undefined",le="+Inf",model_name="undefined"} 10.0
e2e_request_latency_seconds_sum{engine_type="undefined",model_name="undefined"} 12.3
e2e_request_latency_seconds_count{engine_type="undefined",model_name="undefined"} 10.0
# TYPE time_to_first_token_seconds histogram
time_to_first_token_seconds_bucket{engine_type="undefined",le="0.1",model_name="undefined"} 2.0
time_to_first_token_seconds_bucket{engine_type="undefined",le="+Inf",model_name="undefined"} 10.0
time_to_first_token_seconds_sum{engine_type="undefined",model_name="undefined"} 2.5
time_to_first_token_seconds_count{engine_type="undefined",model_name="undefined"} 10.0
# TYPE time_per_output_token_seconds histogram
time_per_output_token_seconds_sum{engine_type="undefined",model_name="undefined"} 9.8
time_per_output_token_seconds_count{engine_type="undefined",model_name="undefined"} 490.0
# TYPE request_queue_time_seconds histogram
request_queue_time_seconds_sum{engine_type="undefined",model_name="undefined"} 0.5
request_queue_time_seconds_count{engine_type="undefined",model_name="undefined"} 10.0
# TYPE request_success_total counter
request_success_total{engine_type="undefined",finished_reason="stop",model_name="undefined"} 7.0
request_success_total{engine_type="undefined",finished_reason="length",model_name="undefined"} 3.0
request_success_total{engine_type="undefined",finished_reason="cancelled",model_name="undefined"} 4.0
"""


def test_tensorrt_llm_is_read_under_its_own_names() -> None:
    """Those whose client left are not served, and of tokens and waiting requests it says nothing."""
    reading = metrics_page.read(TENSORRT_LLM_PAGE, models=["ignored"], at=AT)

    assert reading.counters == replace(
        CounterSums(),
        request_success=10,
        request_aborted=4,
        inference_count=10,
        request_duration_us=12_300_000,
        queue_duration_us=500_000,
        first_tokens=10,
        first_token_us=2_500_000,
        later_tokens=490,
        later_token_us=9_800_000,
    )
    assert reading.first_token_times == {0.1: 2, float("inf"): 10}
    assert (reading.running_requests, reading.pending_requests) == (None, None)
    assert reading.kv_cache_usage is None


def test_releases_after_it_name_the_server_first_and_count_more() -> None:
    later = "".join(
        line if line.startswith("#") else f"trtllm_{line}"
        for line in TENSORRT_LLM_PAGE.replace("# TYPE ", "# TYPE trtllm_").splitlines(keepends=True)
    )
    more = """# TYPE trtllm_prompt_tokens_total counter
trtllm_prompt_tokens_total{model_name="chat"} 1000.0
trtllm_generation_tokens_total{model_name="chat"} 500.0
# TYPE trtllm_num_requests_waiting gauge
trtllm_num_requests_waiting{model_name="chat"} 4.0
trtllm_kv_cache_utilization{model_name="chat"} 0.75
# TYPE trtllm_request_error_total counter
trtllm_request_error_total{http_code="500",model_name="chat"} 2.0
trtllm_request_error_total{http_code="400",model_name="chat"} 7.0
"""

    reading = metrics_page.read(later + more, models=["ignored"], at=AT)

    first = metrics_page.read(TENSORRT_LLM_PAGE, models=["ignored"], at=AT).counters
    assert reading.counters == replace(
        first, request_failure=2, prompt_tokens=1000, generation_tokens=500
    )
    assert (reading.pending_requests, reading.kv_cache_usage) == (4, 0.75)


def test_newer_releases_of_sglang_count_forward_passes_under_another_name() -> None:
    """And say of each request whether it was streamed."""
    newer = SGLANG_PAGE.replace("gpu_execution", "forward_execution")
    newer = newer.replace(
        'num_requests_total{model_name="chat"} 10.0',
        'num_requests_total{is_streaming="true",model_name="chat"} 4.0\n'
        'sglang:num_requests_total{is_streaming="false",model_name="chat"} 6.0',
    )

    counters = LanguagePage(newer, SGLANG).counters

    assert counters == LanguagePage(SGLANG_PAGE, SGLANG).counters
    assert counters.compute_infer_us == 8_500_000


def test_a_stream_that_broke_is_a_failure_and_counts_once() -> None:
    broken = 'vllm:request_success_total{engine="0",finished_reason="error",model_name="chat"}'

    assert LanguagePage(f"{PAGE}{broken} 2.0\n", VLLM).counters.request_failure == 3
    assert LanguagePage(f"{PAGE}{broken} 8.0\n", VLLM).counters.request_failure == 8
    assert LanguagePage(f"{PAGE}{broken} 8.0\n", VLLM).counters.request_success == 10


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("kv_cache_usage_perc", "gpu_cache_usage_perc"),
        ("inter_token_latency_seconds", "time_per_output_token_seconds"),
    ],
)
def test_names_of_older_releases_are_read(new: str, old: str) -> None:
    page = LanguagePage(PAGE.replace(new, old), VLLM)

    assert (page.kv_cache_usage, page.tokens) == (0.75, TOKENS)


def test_old_and_new_names_together_count_once() -> None:
    """Releases in between export both."""
    line = "\n".join(line for line in PAGE.splitlines() if "inter_token_latency" in line)
    both = PAGE + line.replace("inter_token_latency", "time_per_output_token") + "\n"

    assert LanguagePage(both, VLLM).tokens == TOKENS


def test_of_tritons_backend_requests_are_tritons_and_tokens_are_vllms() -> None:
    reading = metrics_page.read(BACKEND, models=["chat"], at=AT)

    assert reading.counters == CounterSums(
        request_success=4,
        request_failure=1,
        prompt_tokens=10,
        generation_tokens=16,
        first_tokens=4,
        first_token_us=200_000,
        later_tokens=12,
        later_token_us=360_000,
    )
    assert (reading.running_requests, reading.kv_cache_usage) == (None, None)


def test_other_texts_are_refused() -> None:
    with pytest.raises(NotTritonMetrics):
        metrics_page.read("<html>", models=[], at=AT)
    with pytest.raises(NotLanguageMetrics):
        LanguagePage("up 1\n", VLLM)
    with pytest.raises(NotLanguageMetrics):
        metrics_page.read('vllm:prompt_tokens_total{engine="0 1\n', models=[], at=AT)


@pytest.mark.parametrize("value", ["NaN", "+Inf"])
@pytest.mark.parametrize("page", [PAGE, BACKEND])
def test_a_counter_that_is_no_number_is_refused(page: str, value: str) -> None:
    lines = [
        f"{line.rpartition(' ')[0]} {value}"
        if line.startswith("vllm:prompt_tokens_total")
        else line
        for line in page.splitlines()
    ]
    assert lines != page.splitlines()

    with pytest.raises(NotLanguageMetrics):
        metrics_page.read("\n".join(lines) + "\n", models=["chat"], at=AT)
