"""A deployment's dollars split by the requests of its callers: exact, whatever was counted."""

from __future__ import annotations

import itertools
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from fleet.costs.domain import callers
from fleet.costs.domain.callers import Hour, Rest
from portal.core.money import split_exactly

_NAMES = st.sampled_from(["billing", "search", "load-test", "a"])
_MONEY = st.decimals(-1000, 1000, places=6, allow_nan=False)
_HOURS = st.builds(
    Hour,
    cost_amount=_MONEY,
    callers=st.dictionaries(_NAMES, st.integers(0, 10**12)),
    served=st.none() | st.integers(0, 10**12),
    is_counted=st.booleans(),
)


def hour(cost: str, served: int | None, *, is_counted: bool = True, **sent: int) -> Hour:
    return Hour(Decimal(cost), sent, served, is_counted)


@given(st.lists(_HOURS, max_size=8))
def test_callers_and_the_rest_sum_to_the_cost_exactly(hours: list[Hour]) -> None:
    bill = callers.bill(hours, split_exactly)

    assert bill.amount == sum((hour.cost_amount for hour in hours), Decimal(0))
    assert set(bill.callers) <= {
        name for hour in hours for name, count in hour.callers.items() if count
    }


@given(_HOURS, st.integers(0, 10**6))
def test_how_keys_of_a_caller_divide_its_requests_changes_nothing(one: Hour, cut: int) -> None:
    """Rotated or revoked in the hour: the counts of its keys are added before."""
    total = {name: min(count, cut) + max(0, count - cut) for name, count in one.callers.items()}

    again = Hour(one.cost_amount, total, one.served, one.is_counted)
    assert callers.bill([one], split_exactly) == callers.bill([again], split_exactly)


@given(_HOURS)
def test_who_sent_more_bears_no_less(one: Hour) -> None:
    cost = abs(one.cost_amount)
    bill = callers.bill([Hour(cost, one.callers, one.served, one.is_counted)], split_exactly)
    ordered = sorted(bill.callers, key=lambda name: one.callers[name])

    for less, more in itertools.pairwise(ordered):
        # Equal counts may differ by the last micro-dollar.
        assert bill.callers[less] <= bill.callers[more] + Decimal("0.000001")
    assert all(Decimal(0) <= amount <= cost for amount in bill.callers.values())


@given(st.lists(_MONEY, max_size=20))
def test_cents_sum_to_the_rounded_total(amounts: list[Decimal]) -> None:
    cents = callers.in_cents(amounts)

    assert sum(cents, Decimal(0)) == sum(amounts, Decimal(0)).quantize(Decimal("0.01"))
    assert all(abs(a - b) < Decimal("0.011") for a, b in zip(amounts, cents, strict=True))


def test_each_kind_of_hour() -> None:
    bill = callers.bill(
        [
            # 30 and 10 of 50 served.
            hour("1", 50, billing=30, search=10),
            # The gateway counted more than the servers did, as metadata requests.
            hour("1", 8, billing=10),
            # Nobody called.
            hour("1", 0),
            # Only without keys.
            hour("1", 20),
            # No counters of callers in the hour; and no counters of the servers.
            hour("1", 20, is_counted=False),
            hour("1", None),
            # Thirds: the last micro-dollar has an owner.
            hour("1", 3, billing=1, search=1, zebra=1),
        ],
        split_exactly,
    )

    assert bill.callers == {
        "billing": Decimal("0.6") + 1 + Decimal("0.333334"),
        "search": Decimal("0.2") + Decimal("0.333333"),
        "zebra": Decimal("0.333333"),
    }
    assert bill.rest == {
        Rest.IDLE: Decimal(1),
        Rest.WITHOUT_KEY: Decimal("0.2") + 1,
        Rest.NOT_KNOWN: Decimal(2),
    }
