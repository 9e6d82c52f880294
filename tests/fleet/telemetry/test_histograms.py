"""Quantiles of cumulative histograms, and their increases."""

from __future__ import annotations

import json
import math

import pytest

from fleet.telemetry.domain import histograms

_TIMES = {0.5: 180, 2.0: 200, math.inf: 200}


@pytest.mark.parametrize(
    ("histogram", "part", "expected"),
    [
        # As histogram_quantile of PromQL: the 190th of 200 lies half way between 0.5 and 2.
        (_TIMES, 0.95, 1.25),
        (_TIMES, 0.45, 0.25),
        # What is above the last bound is only known to be above it.
        ({0.5: 1, math.inf: 100}, 0.95, 0.5),
        ({0.5: 0, 2.0: 0, math.inf: 0}, 0.95, None),
        ({}, 0.95, None),
        # Without an observation at or below the first bound the interpolation starts there.
        ({0.5: 0, 2.0: 10, math.inf: 10}, 0.5, 1.25),
    ],
)
def test_a_quantile_is_interpolated_in_its_bucket(
    histogram: dict[float, int], part: float, expected: float | None
) -> None:
    assert histograms.quantile(histogram, part) == expected


def test_an_increase_starts_again_where_the_server_did() -> None:
    later = {0.5: 190, 2.0: 230, math.inf: 230}

    assert histograms.increase(_TIMES, later) == {0.5: 10, 2.0: 30, math.inf: 30}
    assert histograms.increase(later, _TIMES) == _TIMES
    assert histograms.increase({1.0: 5, math.inf: 5}, _TIMES) == _TIMES
    assert histograms.increase({}, _TIMES) == _TIMES


def test_a_sum_leaves_out_what_has_other_bounds() -> None:
    assert histograms.total([_TIMES, _TIMES, {1.0: 7, math.inf: 7}]) == {
        0.5: 360,
        2.0: 400,
        math.inf: 400,
    }
    assert histograms.total([]) == {}


def test_a_histogram_survives_a_row() -> None:
    stored = json.loads(json.dumps(histograms.to_json(_TIMES), allow_nan=False))

    assert histograms.from_json(stored) == _TIMES
    assert histograms.to_json({}) is None
    assert histograms.from_json(None) == {}
