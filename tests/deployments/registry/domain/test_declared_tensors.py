"""The lines in which a form takes the tensors of a model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployments.registry.domain import declared_tensors
from portal.core.definitions import Rejected


@pytest.mark.parametrize(
    "text", ["x", "x = FP32", "x = FP32 a", "= FP32 1", "x FP32 1", "x = FP32 99999999999"]
)
def test_lines_that_are_no_tensor_are_refused(text: str) -> None:
    with pytest.raises(Rejected, match="one tensor per line"):
        declared_tensors.parse(text, field="inputs")


def test_lines_are_read_and_written() -> None:
    text = "a.b = FP32 -1 x 3 x 224 x 224\nids = INT64 8"
    rows = declared_tensors.parse(text.lower().replace(" x ", "\u00d7"), field="inputs")

    assert declared_tensors.format_lines(rows) == text
    assert declared_tensors.problem_with(rows) == ""
    for bad in (
        (replace(rows[0], dtype="FP12"),),
        (rows[0], rows[0]),
        (replace(rows[0], dims=(0,)),),
        (replace(rows[0], dims=()),),
        (replace(rows[0], name="a\0"),),
        tuple(replace(rows[0], name=str(n)) for n in range(101)),
    ):
        assert declared_tensors.problem_with(bad)
