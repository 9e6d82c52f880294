from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.definitions import figures
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
        (0.000004, "4 µs"),
        (0.004, "4.0 ms"),
        (0.0123, "12.3 ms"),
        (0.09994, "99.9 ms"),
        (0.09996, "100 ms"),
        (0.905, "905 ms"),
        (0.995, "995 ms"),
        (0.999, "999 ms"),
        (0.9996, "1 s"),
        (1, "1 s"),
        (5.3, "5.3 s"),
        (9.94, "9.9 s"),
        (9.995, "10 s"),
        (10, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (130, "2.2 min"),
        (999.5, "17 min"),
        (3_570, "1 h"),
        (69 * 3600 + 43 * 60, "70 h"),
        (99.4 * 3600, "99 h"),
        (99.6 * 3600, "4.2 d"),
        (1e6, "12 d"),
        (1e9, "11,574 d"),
        (-5.3, "\N{MINUS SIGN}5.3 s"),
    ],
)
def test_times_are_in_the_largest_unit_that_keeps_two_digits(seconds: float, text: str) -> None:
    assert figures.format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "$0"),
        ("0.000000004", "<$0.00000001"),
        ("-0.000000004", "\N{MINUS SIGN}<$0.00000001"),
        ("0.0000001", "$0.00000010"),
        ("0.004", "$0.0040"),
        ("0.00949", "$0.0095"),
        ("0.0138", "$0.014"),
        ("0.0995", "$0.10"),
        ("0.605785", "$0.61"),
        ("0.994", "$0.99"),
        ("0.995", "$1.00"),
        ("0.999", "$1.00"),
        ("1", "$1.00"),
        ("1.006", "$1.01"),
        ("9.994", "$9.99"),
        ("9.995", "$10"),
        ("10", "$10"),
        ("12.4", "$12"),
        ("999.4", "$999"),
        ("999.5", "$1,000"),
        ("1E+6", "$1,000,000"),
        ("-12.5", "\N{MINUS SIGN}$12"),
        ("-0.0138", "\N{MINUS SIGN}$0.014"),
    ],
)
def test_money_has_the_digits_that_matter(amount: str, text: str) -> None:
    assert figures.format_money(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "$0.00"),
        ("0.605785", "$0.605785"),
        ("1234.5", "$1,234.50"),
        ("1E+6", "$1,000,000.00"),
        ("-1.006", "\N{MINUS SIGN}$1.006"),
        ("0.0000000041", "$0.0000000041"),
    ],
)
def test_exact_money_keeps_all_digits_and_cents(amount: str, text: str) -> None:
    assert figures.format_exact_money(Decimal(amount)) == text


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12))
def test_no_amount_is_in_scientific_notation(amount: Decimal) -> None:
    for text in (figures.format_money(amount), figures.format_exact_money(amount)):
        assert re.fullmatch(r"\N{MINUS SIGN}?<?\$[0-9,]+(\.[0-9]+)?", text), text


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
        (0.004, "0.40%"),
        (0.00994, "0.99%"),
        (0.00999, "1.0%"),
        (0.0512, "5.1%"),
        (0.0994, "9.9%"),
        (0.0999, "10%"),
        (0.64, "64%"),
        (0.999, "100%"),
        (1.2, "120%"),
        (-0.5, "-50%"),
    ],
)
def test_small_ratios_keep_two_digits(ratio: float, text: str) -> None:
    assert figures.format_percent(ratio) == text


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
