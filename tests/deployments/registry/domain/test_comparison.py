"""Two versions are compared: their differences, and which of them is better."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.registry.domain import comparison
from deployments.registry.domain.comparison import ComparedFact, NumberPair
from portal.core.definitions.figures import format_seconds


@pytest.mark.parametrize(
    ("left", "right", "fact"),
    [
        ({"accuracy": 0.9}, {"accuracy": 0.95}, ("0.9", "0.95", "+0.05 (+5.6%)", "better")),
        ({"loss": 0.2}, {"loss": 0.3}, ("0.2", "0.3", "+0.1 (+50%)", "worse")),
        (
            {"epochs": 40},
            {"epochs": 30},
            ("40", "30", "\N{MINUS SIGN}10 (\N{MINUS SIGN}25%)", "differs"),
        ),
        ({"accuracy": 0.9}, {"accuracy": 0.9}, ("0.9", "0.9", "", "same")),
        ({"accuracy": 0.9}, {}, ("0.9", "", "", "differs")),
        ({}, {"accuracy": 0}, ("", "0", "", "differs")),
        ({"loss": 1 - 0.9}, {"loss": 0.1}, ("0.1", "0.1", "", "same")),
        ({"loss": 0}, {"loss": 1}, ("0", "1", "+1", "worse")),
    ],
)
def test_metrics_are_compared_by_their_direction(
    left: dict[str, Any], right: dict[str, Any], fact: tuple[str, str, str, str]
) -> None:
    (found,) = comparison.compare_metrics({"metrics": left}, {"metrics": right})

    assert (found.left, found.right, found.change, found.verdict) == fact


def test_a_declared_direction_decides() -> None:
    left = {"metrics": {"score": 1}}
    right = {"metrics": {"score": 2}, "directions": {"score": "lower"}}

    (found,) = comparison.compare_metrics(left, right)

    assert found.verdict == "worse"


def test_every_metric_of_either_version_is_a_row() -> None:
    found = comparison.compare_metrics(
        {"metrics": {"map": 1, "accuracy": 0.5}}, {"metrics": {"f1": 0.3}}
    )

    assert [fact.name for fact in found] == ["accuracy", "f1", "map"]


def test_numbers_that_read_alike_may_differ() -> None:
    pairs = [
        NumberPair("first answer", 12.01, 12.02, is_higher_better=False),
        NumberPair("warm request", None, None, is_higher_better=False),
        NumberPair("loaded in", None, 3.0, is_higher_better=False),
    ]

    assert comparison.compare_numbers(pairs, format_seconds) == [
        ComparedFact(
            "first answer", "12 s", "12 s", "+0.08%", is_better=False, exact=("12.01", "12.02")
        ),
        ComparedFact("loaded in", "", "3 s", exact=("", "3.0")),
    ]
    assert comparison.compare_numbers(pairs, format_seconds)[0].is_different
