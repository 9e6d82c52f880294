"""Blocks are as long as stable's past says: one reading where it is calm, longer where failures come in bursts."""

from __future__ import annotations

import random

import pytest

from deployments.guards.domain.betting import blocks, bursts
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.betting.slots import Slot
from tests.benchmarks import blocks_twin, worlds
from tests.benchmarks.worlds import World


def hour(seed: int, *, burst: float = 1.0, failures: float = 0.01) -> list[Slot]:
    """One pod: 500 requests each 5 s; one slot in twenty has so many times the failures."""
    dice = random.Random(seed)
    slots = []
    for _ in range(720):
        rate = failures * (burst if dice.random() < 0.05 else 1.0)
        failed = sum(dice.random() < rate for _ in range(500))
        slots.append(Slot(500, failed, 500 - failed, (500 - failed) * dice.randint(19_000, 21_000)))
    return slots


STEADY = [Slot(6000, 60, 5940)] * 120


def test_a_calm_hour_takes_blocks_of_one_reading_and_a_bursty_one_does_not() -> None:
    calm, bursty = blocks.choose([hour(1)], STEADY), blocks.choose([hour(1, burst=10.0)], STEADY)

    assert (calm.errors, calm.means, calm.is_from_history) == (0.0, 0.0, True)
    assert (bursty.errors, bursty.means) == (30.0, 0.0)
    assert calm.spread == pytest.approx(0.03, abs=0.005)


def test_an_hour_without_a_burst_is_not_calm_after_one_with_a_burst() -> None:
    """Bursts that come three times an hour miss one hour in twenty."""
    calm = hour(1)
    burst, idle = Slot(6000, 300, 5700), Slot()

    def errors(minutes: list[Slot], *, pods: int = 1) -> float:
        return blocks.choose([calm] * pods, minutes).errors

    assert errors([*STEADY[:50], burst, *STEADY[51:]]) == 30.0
    assert errors([burst, *[Slot(6000, 60, 5940)] * 359]) == 30.0
    assert errors([burst, *[Slot(6000, 60, 5940)] * 360]) == 0.0, "more than six hours ago"
    assert errors(STEADY[:119]) == errors([idle, *STEADY[:119]]) == 30.0, "too few minutes"
    assert errors([], pods=2) == 0.0, "pods are compared with each other"


def test_failures_of_a_minute_are_a_burst_beyond_five_deviations() -> None:
    assert bursts.most(100.0) == 153.0
    assert bursts.most(0.0) == 3.0
    # The burst is itself in the rate of its hour: 61 failures of 60 minutes are expected, 103 are not.
    hour_of = [Slot(6000, 60, 5940)] * 59
    assert bursts.has_none([*STEADY, *hour_of, Slot(6000, 102, 5898)])
    assert not bursts.has_none([*STEADY, *hour_of, Slot(6000, 104, 5896)])


def test_with_too_little_history_the_block_is_a_minute_and_the_evidence_says_so() -> None:
    assert blocks.choose([]) == BlockLengths()
    assert blocks.choose([hour(1)[:71]]) == BlockLengths(history_seconds=355.0)
    assert BlockLengths().describe(60.0) == "blocks of 60 s, for lack of history"


def test_blocks_are_chosen_anew_when_the_history_has_grown() -> None:
    none = BlockLengths()
    assert [none.is_outdated(seconds) for seconds in (0, 355, 360, 400)] == [
        False,
        False,
        True,
        True,
    ]
    six = blocks.choose([hour(1)[:72]], step_seconds=400.0)

    assert (six.errors, six.means, six.history_seconds) == (30.0, 0.0, 360.0)
    assert not six.is_outdated(400.0 + 359)
    assert six.is_outdated(400.0 + 360), "twelve minutes"
    assert not blocks.choose([hour(1)]).is_outdated(1e6), "an hour is all that is read"


def test_a_dozen_blocks_must_show_less_memory_than_chance_allows() -> None:
    """Of twelve blocks that remember each other many show less than 2 / sqrt(12)."""
    assert blocks.most_lag(12) == blocks.most_lag(64) == 0.25
    assert blocks.most_lag(720) == pytest.approx(0.0745, abs=0.0001)


def test_too_few_failures_are_not_calm() -> None:
    few = blocks.choose([hour(1, failures=0.0001)], [Slot(6000, 1, 5999)] * 120)
    assert few.errors == 30.0, "fewer than 50 failures show no bursts"
    assert blocks.from_json(few.to_json()) == few


def test_bursts_that_hit_all_pods_need_no_longer_blocks() -> None:
    dice = random.Random(3)
    load = [10.0 if slot % 120 < 24 else 1.0 for slot in range(720)]

    def pod() -> list[Slot]:
        counts = [sum(dice.random() < 0.01 * factor for _ in range(200)) for factor in load]
        return [Slot(200, failed, 200 - failed, 4_000_000) for failed in counts]

    pods = [pod() for _ in range(4)]

    assert blocks.choose(pods).errors <= 60.0
    assert blocks.choose(pods[:1]).errors > 60.0


def test_pods_that_replaced_each_other_are_one_service() -> None:
    whole, nothing = hour(5), [Slot()] * 360

    split = [[*whole[:360], *nothing], [*nothing, *whole[360:]]]

    assert blocks.choose(split) == blocks.choose([whole])


@pytest.mark.parametrize("world", [World("quiet"), World("own", failing=worlds.own_bursts(12))])
def test_the_benchmarks_choose_the_same_blocks(world: World) -> None:
    streams = worlds.simulate(world, rollouts=3, seed=9)

    errors, means = blocks_twin.lengths_at(streams, 120)

    chosen = [blocks_twin.product_lengths(streams, row, 120) for row in range(3)]
    assert [length.errors for length in chosen] == list(errors)
    assert [length.means for length in chosen] == list(means)
