"""Taints that pods tolerate, as text and as manifests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.spec.domain import node_selection


def test_taints_become_tolerations() -> None:
    text = "reserved=batch:NoSchedule, example.com/old:NoExecute ,reserved=batch:NoSchedule"

    assert (
        node_selection.normalized_taints(text)
        == "example.com/old:NoExecute, reserved=batch:NoSchedule"
    )
    assert [one.manifest() for one in node_selection.read_tolerations(text)] == [
        {"key": "example.com/old", "effect": "NoExecute", "operator": "Exists"},
        {"key": "reserved", "effect": "NoSchedule", "operator": "Equal", "value": "batch"},
    ]
    assert node_selection.read_tolerations("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "reserved",
        "reserved:",
        ":NoSchedule",
        "*:NoSchedule",
        "reserved=:NoSchedule",
        "reserved:PreferNoSchedule",
        "reserved=a b:NoSchedule",
        "reserved:NoSchedule\n=x",
        ", ".join(f"k{i}:NoSchedule" for i in range(11)),
    ],
)
def test_what_is_no_taint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not taints"):
        node_selection.split_taints(text)


@given(st.text(max_size=60))
def test_any_text_is_refused_or_stays_as_it_was_read(text: str) -> None:
    try:
        once = node_selection.normalized_taints(text)
    except ValueError:
        return
    assert node_selection.normalized_taints(once) == once
