from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.telemetry.domain.counters import CounterSums, PodReading, increases, total
from fleet.telemetry.domain.triton_metrics import NotTritonMetrics, TritonPage

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
PAGE = """# HELP nv_inference_request_success Number of successful inference requests
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="detector",version="1"} 40
nv_inference_request_success{model="other",version="1"} 9
# TYPE nv_inference_request_failure counter
nv_inference_request_failure{model="detector",reason="OTHER",version="1"} 1
nv_inference_request_failure{model="detector",reason="BACKEND",version="1"} 2
# TYPE nv_inference_count counter
nv_inference_count{model="detector",version="1"} 80
# TYPE nv_inference_exec_count counter
nv_inference_exec_count{model="detector",version="1"} 20
# TYPE nv_inference_request_duration_us counter
nv_inference_request_duration_us{model="detector",version="1"} 1.2e+06
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="detector",version="1"} 3
# TYPE nv_inference_request_summary_us summary
nv_inference_request_summary_us_count{model="detector",version="1"} 40
nv_inference_request_summary_us_sum{model="detector",version="1"} 1200000
nv_inference_request_summary_us{model="detector",version="1",quantile="0.95"} 45000
# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5
"""


def reading(seconds: float, success: int, compute_us: int = 0) -> PodReading:
    return PodReading(
        START + timedelta(seconds=seconds),
        CounterSums(request_success=success, compute_infer_us=compute_us),
    )


def test_page_of_one_model_sums_versions_and_failure_reasons() -> None:
    page = TritonPage(PAGE, models=["detector"])

    assert page.counters == CounterSums(40, 3, 80, 20, 1_200_000)
    assert (page.pending_requests, page.gpu_utilisation, page.request_p95_us) == (3, 0.5, 45000)


def test_page_of_several_models_sums_them_and_leaves_others_out() -> None:
    text = PAGE + 'nv_inference_request_success{model="unlisted",version="1"} 1000\n'

    several = TritonPage(text, models=["detector", "other"])
    every = TritonPage(text, models=[])

    assert several.counters.request_success == 40 + 9
    assert every.counters.request_success == 40 + 9 + 1000


@pytest.mark.parametrize("text", ["", "<html>", "nv_cpu_utilization 0.5\n", PAGE[:90]])
def test_page_without_counters_is_not_known_rather_than_zero(text: str) -> None:
    with pytest.raises(NotTritonMetrics):
        TritonPage(text, models=["detector"])


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e400"])
def test_a_counter_that_is_no_count_is_not_known(value: str) -> None:
    text = PAGE.replace(
        'success{model="detector",version="1"} 40',
        f'success{{model="detector",version="1"}} {value}',
    )

    with pytest.raises(
        NotTritonMetrics, match="nv_inference_request_success is negative or not a number"
    ):
        TritonPage(text, models=["detector"])
    assert TritonPage(text, models=["other"]).counters.request_success == 9


def test_counter_that_went_down_began_anew() -> None:
    result = increases([reading(0, 100), reading(5, 110), reading(10, 4)], ready_at=None)

    assert [item.counters.request_success for item in result] == [10, 4]


def test_first_reading_counts_only_when_the_pod_had_just_begun() -> None:
    readings = [reading(0, 7), reading(5, 9)]

    fresh = increases(readings, ready_at=START - timedelta(seconds=10))
    old = increases(readings, ready_at=START - timedelta(hours=1))

    assert total(fresh).request_success == 9
    assert total(old).request_success == 2


def test_pod_that_was_read_before_it_was_ready_is_not_counted_from_zero() -> None:
    result = increases([reading(0, 500), reading(5, 502)], ready_at=START + timedelta(seconds=3))

    assert total(result).request_success == 2


def test_gap_counts_its_requests_but_not_its_time() -> None:
    result = increases([reading(0, 0), reading(3600, 50)], ready_at=None)

    assert (result[0].counters.request_success, result[0].observed_ms) == (50, 0)


def test_busy_time_is_the_time_a_model_executed() -> None:
    result = increases([reading(0, 0), reading(10, 5, compute_us=2_500_000)], ready_at=None)

    assert (result[0].busy_ms, result[0].observed_ms, result[0].busy_source) == (
        2500,
        10_000,
        "triton",
    )


def test_a_batch_is_busy_once_however_many_requests_it_has() -> None:
    """16 requests in 2 executions of 50 ms: Triton adds 50 ms for each request."""
    counters = CounterSums(
        request_success=16, inference_count=16, execution_count=2, compute_infer_us=16 * 50_000
    )

    [increase] = increases(
        [PodReading(START, CounterSums()), PodReading(START + timedelta(seconds=10), counters)],
        ready_at=None,
    )

    assert increase.busy_ms == 100


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), min_size=1, max_size=30))
def test_every_request_between_readings_is_counted_once_whatever_restarts(
    steps: list[tuple[bool, int]],
) -> None:
    counter, answered, readings = 0, 0, [reading(0, 0)]
    for second, (is_restart, more) in enumerate(steps, start=1):
        # A restart is only detected when the new count is below the old one.
        counter = 0 if is_restart and more < counter else counter
        counter += more
        answered += more
        readings.append(reading(second, counter))

    assert total(increases(readings, ready_at=None)).request_success == answered
