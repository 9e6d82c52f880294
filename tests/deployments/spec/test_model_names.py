from __future__ import annotations

import pytest

from deployments.spec.domain import model_names


@pytest.mark.parametrize("name", ["detector", "a", "bert-base-2", "x" * 40])
def test_names_that_kubernetes_and_triton_take(name: str) -> None:
    assert model_names.model_name_problem(name) == ""


@pytest.mark.parametrize(
    "name", ["", "Detector", "my_model", "-a", "a-", "2d", "a.b", "a/b", "x" * 41, "ä", "a\n"]
)
def test_other_names_are_refused_with_a_message(name: str) -> None:
    assert len(model_names.model_name_problem(name)) > 20
