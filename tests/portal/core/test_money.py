from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.money import MICRO, split_exactly

amounts = st.decimals(min_value=0, max_value=10_000, places=9)
weights = st.lists(st.integers(min_value=0, max_value=10**12), min_size=1, max_size=12).filter(sum)


@given(total=amounts, shares=weights)
def test_parts_sum_to_the_total_exactly(total: Decimal, shares: list[int]) -> None:
    assert sum(split_exactly(total, shares)) == total


@given(total=amounts, shares=weights)
def test_each_part_is_within_two_units_of_its_share(total: Decimal, shares: list[int]) -> None:
    for part, weight in zip(split_exactly(total, shares), shares, strict=True):
        assert abs(part - total * weight / sum(shares)) < 2 * MICRO


def test_a_third_goes_to_the_largest_remainder() -> None:
    assert split_exactly(Decimal(1), [1, 1, 1]) == [
        Decimal("0.333334"),
        Decimal("0.333333"),
        Decimal("0.333333"),
    ]


@pytest.mark.parametrize("shares", [[0, 0], [-1, 2]])
def test_weights_that_mean_nothing_are_refused(shares: list[int]) -> None:
    with pytest.raises(ValueError, match="weights"):
        split_exactly(Decimal(1), shares)
