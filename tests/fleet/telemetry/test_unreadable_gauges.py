"""A gauge that is no number is not known; the rest of the page counts. A counter that is none refuses the page."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime

import pytest

from fleet.telemetry.domain import metrics_page
from fleet.telemetry.domain.counters import PodReading
from fleet.telemetry.domain.language_metrics import NotLanguageMetrics
from fleet.telemetry.domain.triton_metrics import NotTritonMetrics
from tests.fleet.telemetry.test_language_metrics import PAGE as VLLM_PAGE
from tests.fleet.telemetry.test_language_metrics import SGLANG_PAGE, TENSORRT_LLM_PAGE

AT = datetime(2026, 11, 28, 9, tzinfo=UTC)
TRITON_PAGE = """nv_inference_request_success{model="chat",version="1"} 40
nv_inference_count{model="chat",version="1"} 80
nv_inference_pending_request_count{model="chat",version="1"} 3
nv_inference_request_summary_us{model="chat",version="1",quantile="0.95"} 45000
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5
nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 1048576
nv_energy_consumption{gpu_uuid="GPU-1"} 12
"""
PAGES = {
    "Triton": TRITON_PAGE,
    "vLLM": VLLM_PAGE,
    "SGLang": SGLANG_PAGE,
    "TensorRT-LLM": TENSORRT_LLM_PAGE,
}
GAUGES = {
    "nv_inference_pending_request_count": "pending_requests",
    "nv_inference_request_summary_us": "request_p95_us",
    "nv_gpu_utilization": "gpu_utilisation",
    "nv_gpu_memory_used_bytes": "gpu_memory_used_mib",
    "num_requests_running": "running_requests",
    "num_requests_waiting": "pending_requests",
    "num_running_reqs": "running_requests",
    "num_queue_reqs": "pending_requests",
    "kv_cache_usage_perc": "kv_cache_usage",
    "token_usage": "kv_cache_usage",
    "kv_cache_utilization": "kv_cache_usage",
}
CASES = [
    pytest.param(page, gauge, name, id=f"{server} {gauge}")
    for server, page in PAGES.items()
    for gauge, name in GAUGES.items()
    if gauge in page
]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "", "-1", "1e400", "1e30", "null", "<x>"])
@pytest.mark.parametrize(("page", "gauge", "name"), CASES)
def test_an_unreadable_gauge_is_not_known_and_the_others_are(
    page: str, gauge: str, name: str, value: str
) -> None:
    before = _read(page)

    after = _read(_changed(page, gauge, value))

    assert getattr(before, name) is not None
    assert getattr(after, name) is None
    others = [field.name for field in fields(PodReading) if field.name != name]
    assert [getattr(after, other) for other in others] == [getattr(before, o) for o in others]


@pytest.mark.parametrize(
    "line",
    [
        "python_gc_objects_collected NaN",
        "nv_energy_consumption",
        "process_start_time_seconds +Inf 99999999999999999999999",
        'python_info{version="3"} NaN',
        'cut_off{a="b',
        "<html>",
        "\x00\x01",
    ],
)
@pytest.mark.parametrize("server", PAGES)
def test_lines_of_no_one_change_nothing(server: str, line: str) -> None:
    page = PAGES[server]

    assert _read(f"{line}\n{page}{line}\n") == _read(page)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "", "1e400"])
@pytest.mark.parametrize(
    ("server", "counter"),
    [
        ("Triton", "nv_inference_request_success"),
        ("vLLM", "vllm:prompt_tokens_total"),
        ("SGLang", "sglang:generation_tokens_total"),
        ("TensorRT-LLM", "request_success_total"),
    ],
)
def test_an_unreadable_counter_refuses_the_page(server: str, counter: str, value: str) -> None:
    with pytest.raises((NotTritonMetrics, NotLanguageMetrics)):
        _read(_changed(PAGES[server], counter, value))


def _changed(page: str, gauge: str, value: str) -> str:
    lines = [
        f"{line.rpartition(' ')[0]} {value}" if gauge in line and not line.startswith("#") else line
        for line in page.splitlines()
    ]
    assert lines != page.splitlines()
    return "\n".join(lines) + "\n"


def _read(page: str) -> PodReading:
    return metrics_page.read(page, models=["chat"], at=AT)
