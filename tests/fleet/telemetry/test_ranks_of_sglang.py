"""SGLang with --enable-metrics-for-all-schedulers: each rank reports the requests of its engine."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fleet.telemetry.domain import metrics_page
from fleet.telemetry.domain.counters import PodReading

AT = datetime(2026, 11, 28, 9, tzinfo=UTC)


@pytest.mark.parametrize("tensor", [1, 2, 4, 8])
@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("engines", [1, 2, 4])
@pytest.mark.parametrize("attention", [False, True], ids=["replicas", "data-parallel attention"])
def test_requests_of_an_engine_count_once(
    tensor: int, stages: int, engines: int, attention: bool
) -> None:
    """With data-parallel attention the tensor ranks are divided among the engines."""
    if attention and tensor < engines:
        pytest.skip("has fewer ranks than engines")
    reading = _read(_page(tensor=tensor, stages=stages, engines=engines, attention=attention))

    assert reading.running_requests == sum(4 + engine for engine in range(engines))
    assert reading.pending_requests == sum(3 + engine for engine in range(engines))
    assert reading.kv_cache_usage == 0.5
    assert reading.counters.preemptions == 2 * engines
    assert reading.counters.queue_duration_us == 1_500_000 * engines
    # The stages of a pipeline work one after the other.
    assert reading.counters.compute_infer_us == 2_000_000 * engines * stages


def test_a_rank_that_is_late_or_not_known_leaves_the_others() -> None:
    page = "".join(
        f'sglang:num_running_reqs{{model_name="m",pp_rank="0",tp_rank="{rank}"}} {value}\n'
        for rank, value in enumerate(["3.0", "NaN", "4.0"])
    )

    assert _read(page).running_requests == 4


def _page(*, tensor: int, stages: int, engines: int, attention: bool) -> str:
    lines = []
    for engine in range(engines):
        ranks = range(tensor)
        if attention:
            size = tensor // engines
            ranks = range(engine * size, (engine + 1) * size)
        for rank in ranks:
            for stage in range(stages):
                of_engine = f'dp_rank="{engine}",' if engines > 1 else ""
                labels = f'{of_engine}engine_type="unified",model_name="m",moe_ep_rank="{rank}",'
                labels += f'pp_rank="{stage}",tp_rank="{rank}"'
                lines += [
                    f"sglang:num_running_reqs{{{labels}}} {4.0 + engine}",
                    f"sglang:num_queue_reqs{{{labels}}} {3.0 + engine}",
                    f"sglang:token_usage{{{labels}}} 0.5",
                    f"sglang:num_retracted_requests_total{{{labels}}} 2.0",
                    f"sglang:queue_time_seconds_sum{{{labels}}} 1.5",
                    f"sglang:queue_time_seconds_count{{{labels}}} 3.0",
                    f'sglang:forward_execution_seconds_total{{category="decode",{labels}}} 2.0',
                ]
    return "\n".join(lines) + "\n"


def _read(page: str) -> PodReading:
    return metrics_page.read(page, models=["m"], at=AT)
