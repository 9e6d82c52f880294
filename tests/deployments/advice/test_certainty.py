"""A saving is measured if nothing in it was assumed."""

from __future__ import annotations

import pytest

from deployments.advice.domain import catalogue
from deployments.advice.domain.certainty import find_certainty
from deployments.advice.domain.evidence import DEMO_DATA, EvidenceLine

MEASURED = {"idle", "fewer-replicas", "spot", "office-hours", "scale-to-zero", "unused-node"}


@pytest.mark.parametrize("kind", sorted(catalogue.TITLES))
def test_each_kind_is_measured_or_says_what_was_assumed(kind: str) -> None:
    certainty = find_certainty(kind, [EvidenceLine("Requests, 7 days", "0")])

    assert certainty.is_measured == (kind in MEASURED)
    assert certainty.label == ("measured" if kind in MEASURED else "estimated")
    assert ("was not measured" in certainty.reason) == (kind not in MEASURED)


def test_demo_data_are_no_measurement() -> None:
    certainty = find_certainty("idle", [EvidenceLine(DEMO_DATA, "168 of 168 hours")])

    assert (certainty.label, certainty.reason) == (
        "estimated",
        "Some of the hours are demo data.",
    )
