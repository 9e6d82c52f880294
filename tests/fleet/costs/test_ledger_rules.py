from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from fleet.costs.domain import ledger
from fleet.costs.domain.ledger import Allocation, Holder, LedgerPart, NodeLife
from fleet.gpus.domain.intervals import HOUR, HOUR_MS, LeaseInterval, hours_between
from portal.core.money import split_exactly

HOUR_START = datetime(2026, 11, 20, 10, tzinfo=UTC)
A = Holder("vision", "vision", "detector-r1")
B = Holder("nlp", "nlp", "ranker-r2")

moments = st.integers(-2 * HOUR_MS, 5 * HOUR_MS).map(
    lambda ms: HOUR_START + timedelta(milliseconds=ms)
)
intervals = st.tuples(moments, st.none() | moments).map(
    lambda pair: LeaseInterval(pair[0], None if pair[1] is None else max(pair))  # type: ignore[type-var]
)
holders = st.builds(
    Holder, st.sampled_from(["", "vision", "nlp"]), st.just("ns"), st.sampled_from(["a", "b", "c"])
)
held_lists = st.lists(
    st.builds(
        Allocation, holders, st.sampled_from([125_000, 333_333, 1_000_000, 4_000_000]), intervals
    ),
    max_size=8,
)
prices = st.decimals("0.000001", "200", places=6)
lives = st.builds(NodeLife, st.integers(1, 8), intervals, prices)


def parts(
    life: NodeLife, allocations: list[Allocation], until: datetime | None = None
) -> list[LedgerPart]:
    return ledger.split_hour(life, allocations, HOUR_START, split=split_exactly, until=until)


def life(gpus: int, price: str, end: datetime | None = None) -> NodeLife:
    return NodeLife(gpus, LeaseInterval(HOUR_START - HOUR, end), Decimal(price))


def test_half_held_gpu_costs_half_and_the_rest_is_idle() -> None:
    allocations = [Allocation(A, 1_000_000, LeaseInterval(HOUR_START, HOUR_START + HOUR / 2))]

    assert parts(life(1, "1.006"), allocations) == [
        LedgerPart(A, HOUR_MS // 2, Decimal("0.503000")),
        LedgerPart(None, HOUR_MS // 2, Decimal("0.503000")),
    ]


def test_node_that_went_after_a_quarter_of_the_hour_costs_a_quarter() -> None:
    gone = HOUR_START + HOUR / 4
    allocations = [Allocation(A, 1_000_000, LeaseInterval(HOUR_START - HOUR))]

    assert parts(life(1, "4", gone), allocations) == [
        LedgerPart(A, HOUR_MS // 4, Decimal("1.000000"))
    ]


def test_what_is_held_of_a_node_before_it_existed_does_not_count() -> None:
    came = NodeLife(2, LeaseInterval(HOUR_START + HOUR / 2), Decimal(4))
    allocations = [
        Allocation(A, 1_000_000, LeaseInterval(HOUR_START)),
        Allocation(B, 1_000_000, LeaseInterval(HOUR_START + HOUR / 2)),
    ]

    assert parts(came, allocations) == [
        LedgerPart(B, HOUR_MS // 2, Decimal("1.000000")),
        LedgerPart(A, HOUR_MS // 2, Decimal("1.000000")),
    ]


def test_node_that_did_not_exist_in_the_hour_has_no_rows() -> None:
    assert parts(life(1, "4", HOUR_START), []) == []


def test_pods_that_held_more_than_there_is_share_the_cost_and_nothing_is_idle() -> None:
    allocations = [
        Allocation(A, 1_000_000, LeaseInterval(HOUR_START)),
        Allocation(B, 1_000_000, LeaseInterval(HOUR_START)),
    ]

    rows = parts(life(1, "1"), allocations)

    assert [(part.holder, part.cost_amount) for part in rows] == [
        (B, Decimal("0.500000")),
        (A, Decimal("0.500000")),
    ]


@given(lives, held_lists)
def test_rows_sum_to_the_nodes_cost_exactly(life: NodeLife, allocations: list[Allocation]) -> None:
    rows = parts(life, allocations)

    cost = ledger.node_cost(life, HOUR_START, HOUR_START + HOUR)
    assert sum(part.cost_amount for part in rows) == (cost if rows else 0)
    assert all(part.cost_amount >= 0 and part.gpu_milliseconds >= 0 for part in rows)


@given(lives, held_lists, st.randoms(use_true_random=False))
def test_order_does_not_matter(
    life: NodeLife, allocations: list[Allocation], shuffle: random.Random
) -> None:
    shuffled = list(allocations)
    shuffle.shuffle(shuffled)

    assert parts(life, shuffled) == parts(life, allocations)


@given(intervals, moments, moments)
def test_an_interval_cut_into_hours_keeps_its_length(
    interval: LeaseInterval, one: datetime, other: datetime
) -> None:
    start, end = min(one, other), max(one, other)

    cut = sum(
        interval.overlap_ms(max(hour, start), min(hour + HOUR, end))
        for hour in hours_between(start, end)
    )

    assert cut == interval.overlap_ms(start, end)


@given(lives, held_lists, held_lists)
def test_adjustments_lead_from_any_sealed_rows_to_the_new_ones(
    life: NodeLife, before: list[Allocation], after: list[Allocation]
) -> None:
    sealed = {
        part.holder: (part.gpu_milliseconds, part.cost_amount) for part in parts(life, before)
    }
    expected = parts(life, after)

    for change in ledger.difference(sealed, expected):
        ms, cost = sealed.get(change.holder, (0, Decimal(0)))
        sealed[change.holder] = (ms + change.gpu_milliseconds, cost + change.cost_amount)

    assert ledger.difference(sealed, expected) == []
