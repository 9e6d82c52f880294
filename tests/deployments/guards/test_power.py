"""How small a regression is found, and how soon: held against the tests themselves."""

from __future__ import annotations

import pytest

from deployments.guards.domain.betting import power
from deployments.guards.domain.betting.power import PowerSetting, PowerTraffic
from deployments.guards.domain.betting.rates import RateLimit
from tests.benchmarks import lanes_twin, sequential, worlds
from tests.benchmarks.worlds import World

QUIET = PowerTraffic(requests=100.0, weight=0.05, base_rate=0.01)
CALM = PowerSetting(RateLimit(ratio=1.25), level=0.005, block_seconds=0.0)


@pytest.mark.parametrize(("weight", "times"), [(0.05, 5.0), (0.25, 3.0), (0.5, 2.0)])
def test_the_time_to_find_a_regression_is_that_of_the_tests(weight: float, times: float) -> None:
    traffic = PowerTraffic(requests=100.0, weight=weight, base_rate=0.01)
    expected = power.seconds_to_find(traffic, CALM, times=times)
    world = World("bad", errors=times, weights=(weight,), step_minutes=20)
    streams = worlds.simulate(world, rollouts=12, seed=5)

    median = sequential.median_seconds(lanes_twin.aborts(streams, is_latency_judged=False))

    assert expected is not None
    assert 0.8 * median <= expected <= 3 * median, "it is the time in which nine of ten are found"


def test_more_traffic_and_more_time_find_less() -> None:
    smallest = [
        power.smallest_regression(QUIET, CALM, seconds=seconds) for seconds in (60, 600, 6000)
    ]
    busy = power.smallest_regression(PowerTraffic(1000.0, 0.05, 0.01), CALM, seconds=600)

    assert smallest[1] is not None
    assert smallest[2] is not None
    assert busy is not None
    assert smallest[0] is None or smallest[0] > smallest[1]
    assert smallest[1] > smallest[2] > 1.25
    assert busy < smallest[1]


def test_nothing_is_found_without_requests_or_below_the_limit() -> None:
    assert power.smallest_regression(PowerTraffic(0.0, 0.05, 0.01), CALM, seconds=600) is None
    assert power.seconds_to_find(QUIET, CALM, times=1.2) is None


def test_long_blocks_take_longer_for_all_but_gross_regressions() -> None:
    blocks = PowerSetting(RateLimit(ratio=1.25), level=0.005, block_seconds=60.0)
    small = [power.seconds_to_find(QUIET, setting, times=3.0) for setting in (CALM, blocks)]
    gross = [power.seconds_to_find(QUIET, setting, times=90.0) for setting in (CALM, blocks)]

    assert small[0] is not None
    assert small[1] is not None
    assert small[1] >= 13 * 60 > small[0]
    assert gross[0] == gross[1] == 10.0


def test_a_slowdown_is_found_when_enough_blocks_are_complete() -> None:
    def found(block_count: int, spread: float = 0.05) -> float | None:
        return power.smallest_slowdown(
            ratio=1.25, block_count=block_count, spread=spread, level=0.005
        )

    assert found(13) is None
    few, many = found(20), found(200)
    assert few is not None
    assert many is not None
    assert 1.25 < many < few < 1.6
    assert found(200, spread=0.0) == 1.25
