"""The portal's YAML is PyYAML's, to the byte, whatever a manifest or a live object holds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.manifests.domain.yaml import by_library, to_yaml

_texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "yes",
            "null",
            "1",
            "1e3",
            "0x1f",
            "~",
            "",
            " a",
            "a ",
            "a: b",
            "- a",
            "#",
            "a #b",
            "'",
            '"',
        ]
    ),
    st.sampled_from(
        [
            "2026-01-01",
            "a\nb",
            "a\n",
            "\na",
            "a\n\nb\n",
            "a\n b",
            "é\nb",
            "x" * 200,
            "word " * 60,
            'sum(a{b=~"c"})',
            "é",
            "\t",
        ]
    ),
)
_leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _texts
_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=200)
@given(st.dictionaries(_texts, _values, max_size=4))
def test_it_writes_what_pyyaml_writes(manifest: dict[str, Any]) -> None:
    text = to_yaml([manifest])

    assert text == by_library(manifest)
    assert yaml.safe_load(text) == manifest


@pytest.mark.parametrize("value", [{}, [], None, True, 0, 1.5, "", "a\nb", [[1]], [{}], [[]]])
def test_unusual_values_are_written_as_by_pyyaml(value: Any) -> None:
    assert to_yaml([{"a": value}]) == by_library({"a": value})


def test_a_shared_part_is_written_in_full_each_time() -> None:
    part = {"cpu": "1"}

    assert "&id" not in to_yaml([{"requests": part, "limits": part}])
