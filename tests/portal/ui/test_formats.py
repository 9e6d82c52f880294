from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from portal.ui import formats

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("gap", "text"),
    [
        (timedelta(seconds=3), "just now"),
        (timedelta(seconds=40), "40 s ago"),
        (timedelta(minutes=12, seconds=59), "12 min ago"),
        (timedelta(hours=3), "3 h ago"),
        (timedelta(days=5), "5 d ago"),
        (-timedelta(minutes=9), "in 9 min"),
        (timedelta(days=61), "21 Sep 2026"),
    ],
)
def test_times_are_relative_until_they_are_far(gap: timedelta, text: str) -> None:
    assert formats.since(NOW - gap, NOW) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (40.4, "40 s"),
        (120, "2 min"),
        (130, "2 min 10 s"),
        (3605, "1 h"),
        (11_130, "3 h 5 min"),
        (90_061, "1 d 1 h"),
    ],
)
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert formats.duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "$0.00"),
        ("41.205", "$41.20"),
        ("999.99", "$999.99"),
        ("3310.42", "$3,310"),
        ("-12.5", "\N{MINUS SIGN}$12.50"),
        ("0.0123", "$0.01"),
        ("0.004", "$0.004"),
        ("0.0000001", "$<0.000001"),
    ],
)
def test_money_has_the_digits_that_matter(amount: str, text: str) -> None:
    assert formats.money(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "$0.00"),
        ("1234.5", "$1,234"),
        ("12.345", "$12.34"),
        ("1", "$1.00"),
        ("0.5", "$0.500"),
        ("0.0138", "$0.0138"),
        ("0.013849", "$0.0138"),
        ("0.00001", "$0.0000100"),
        ("0.000000004", "$<0.00000001"),
        ("-0.0138", "\N{MINUS SIGN}$0.0138"),
    ],
)
def test_price_of_one_unit_has_three_digits_that_count(amount: str, text: str) -> None:
    assert formats.unit_price(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (182 * 2**20, "182 MiB"), (2**31, "2 GiB")],
)
def test_sizes_are_binary(count: int, text: str) -> None:
    assert formats.filesize(count) == text


def test_mebibytes_grow_into_gibibytes() -> None:
    assert formats.mib(3174) == "3.1 GiB"
    assert formats.mib(512) == "512 MiB"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0, "0%"),
        (0.00000005, "<0.01%"),
        (-0.00000005, "-<0.01%"),
        (0.0001, "0.01%"),
        (0.0006, "0.06%"),
        (0.0512, "5.1%"),
        (0.64, "64%"),
        (1.2, "120%"),
    ],
)
def test_small_shares_keep_digits(ratio: float, text: str) -> None:
    assert formats.percent(ratio) == text


@pytest.mark.parametrize(
    ("count", "places", "text"),
    [
        ("0", 1, "0.0"),
        ("0.000001", 1, "less than 0.1"),
        ("0.0999", 1, "less than 0.1"),
        ("0.1", 1, "0.1"),
        ("2136.25", 1, "2,136.2"),
        ("0.009", 2, "less than 0.01"),
        ("12.5", 2, "12.50"),
        ("0.00002", 4, "less than 0.0001"),
        # An adjustment takes time back.
        ("-0.5", 4, "-0.5000"),
        ("-0.00002", 4, "-0.00002"),
        ("-0.00000028", 4, "-0.0000003"),
        ("0E-6", 1, "0.0"),
    ],
)
def test_what_is_small_but_real_is_never_shown_as_zero(count: str, places: int, text: str) -> None:
    assert formats.decimals(Decimal(count), places) == text
