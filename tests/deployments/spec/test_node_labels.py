"""Labels of nodes that pods ask for, as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.spec.domain import node_selection


def test_the_same_labels_are_the_same_text() -> None:
    text = " topology.kubernetes.io/zone=us-east-1a ,pool=serving,"

    assert (
        node_selection.normalized_labels(text)
        == "pool=serving, topology.kubernetes.io/zone=us-east-1a"
    )
    assert node_selection.normalized_labels("") == ""


@pytest.mark.parametrize(
    "text",
    [
        "pool",
        "pool=",
        "=serving",
        "pool=a=b",
        "pool=a, pool=a",
        "pool=-a",
        "pool=" + "a" * 64,
        "Example.com/pool=a",
        "a/b/c=d",
        "pool=a\nother",
        "karpenter.sh/capacity-type=spot",
        ", ".join(f"k{i}=v" for i in range(11)),
    ],
)
def test_what_no_node_can_have_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not labels"):
        node_selection.read_labels(text)


@given(st.text(max_size=60))
def test_any_text_is_refused_or_stays_as_it_was_read(text: str) -> None:
    try:
        once = node_selection.normalized_labels(text)
    except ValueError:
        return
    assert node_selection.normalized_labels(once) == once
