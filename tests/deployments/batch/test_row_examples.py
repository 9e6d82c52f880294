"""Examples of rows are rows: what they show, a job would read."""

from __future__ import annotations

import json

import pytest

from deployments.batch.domain import csv_files, csv_rows, row_examples
from deployments.registry.domain.signatures import Signature, Tensor

_TENSORS = (
    Tensor("age", "INT32", (-1, 1)),
    Tensor("pixels", "FP32", (-1, 2, 3)),
    Tensor("words", "STRING", (-1, 2)),
    Tensor("is_new", "BOOL", (-1,)),
)


@pytest.mark.parametrize("max_batch_size", [0, 32])
def test_both_formats_are_the_same_request(max_batch_size: int) -> None:
    signature = Signature(_TENSORS, (), max_batch_size)

    examples = row_examples.write_examples(signature)

    assert examples is not None
    assert not examples.is_shortened
    header, row = examples.csv_lines.split("\n")
    columns = csv_files.columns_of(header.encode(), signature, name="rows.csv", version="m:1")
    request = csv_rows.request_of(row.encode(), columns, 2)
    assert json.loads(examples.json_line) == request
    assert request["id"] == "r1"
    assert [tensor["data"] for tensor in request["inputs"]] == [
        [1],
        [0.5] * 6,
        ["text", "text"],
        [True],
    ]


def test_many_values_and_inputs_are_cut() -> None:
    image = Tensor("image", "FP32", (-1, 3, 224, 224))
    many = tuple(Tensor(f"x{number}", "INT64", (-1,)) for number in range(20))

    one = row_examples.write_examples(Signature((image,), (), 8))
    several = row_examples.write_examples(Signature(many, (), 8))

    assert one is not None
    assert several is not None
    assert (one.is_shortened, several.is_shortened) == (True, True)
    assert '"shape": [1, 3, 224, 224]' in one.json_line
    assert one.json_line.endswith('"data": [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, …]}]}')
    assert several.json_line.count('"name"') == row_examples.MOST_INPUTS
    assert several.csv_lines.startswith("id,x0,x1,x2,x3,x4,x5,x6,x7,…\nr1,1,")


def test_a_model_that_reads_no_csv_has_an_example_in_json_only() -> None:
    half = row_examples.write_examples(Signature((Tensor("x", "FP16", (-1, 2)),), (), 8))

    assert half is not None
    assert half.csv_lines == ""
    assert row_examples.write_examples(Signature((), ())) is None
