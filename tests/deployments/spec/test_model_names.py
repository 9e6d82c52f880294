from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.domain import model_names


@pytest.mark.parametrize("name", ["detector", "a", "bert-base-2", "x" * 40])
def test_names_that_kubernetes_and_triton_take(name: str) -> None:
    assert model_names.model_name_problem(name) == ""


@pytest.mark.parametrize(
    "name", ["", "Detector", "my_model", "-a", "a-", "2d", "a.b", "a/b", "x" * 41, "ä", "a\n"]
)
def test_other_names_are_refused_in_words(name: str) -> None:
    assert len(model_names.model_name_problem(name)) > 20


@given(st.text(max_size=60))
def test_a_suggested_name_is_legal_or_empty(filename: str) -> None:
    suggestion = model_names.suggest_model_name(filename)

    assert suggestion == "" or re.fullmatch(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", suggestion)
    assert suggestion == "" or model_names.model_name_problem(suggestion) == ""
