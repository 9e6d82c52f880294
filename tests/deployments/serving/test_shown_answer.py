"""Answers for people: classes by name from the likeliest on, else values with their shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.serving.domain.shown_answer import (
    AnsweredItem,
    AnsweredOutput,
    ScoredClass,
    describe_answer,
)

NAMES = ("cat", "dog", "owl")


def answer_of(*outputs: dict[str, Any]) -> str:
    return json.dumps({"model_name": "m", "outputs": outputs})


def output(shape: list[int], data: list[Any], datatype: str = "FP32") -> dict[str, Any]:
    return {"name": "y", "datatype": datatype, "shape": shape, "data": data}


def shown(text: str, names: tuple[str, ...] = ()) -> AnsweredOutput:
    described = describe_answer(text, names)
    assert described is not None
    (only,) = described.outputs
    return only


def test_probabilities_are_ranked_by_class() -> None:
    first, second = shown(answer_of(output([2, 3], [0.1, 0.7, 0.2, 0.5, 0.25, 0.25])), NAMES).items

    assert first.classes == (
        ScoredClass("dog", "0.7", 70.0),
        ScoredClass("owl", "0.2", 20.0),
        ScoredClass("cat", "0.1", 10.0),
    )
    assert [scored.name for scored in second.classes] == ["cat", "dog", "owl"]


def test_scores_that_are_no_probabilities_have_no_percentage() -> None:
    (item,) = shown(answer_of(output([1, 3], [-1.5, 12.3456789, 0])), NAMES).items

    assert item.classes == (
        ScoredClass("dog", "12.35", None),
        ScoredClass("owl", "0", None),
        ScoredClass("cat", "-1.5", None),
    )


def test_a_single_score_is_that_of_the_second_class() -> None:
    items = shown(answer_of(output([3, 1], [0.25, 0.75, -2])), ("no", "yes")).items

    assert [item.classes for item in items] == [
        (ScoredClass("no", "0.75", 75.0), ScoredClass("yes", "0.25", 25.0)),
        (ScoredClass("yes", "0.75", 75.0), ScoredClass("no", "0.25", 25.0)),
        (ScoredClass("yes", "-2", None),),
    ]


def test_scores_without_a_batch_dimension_are_of_one_item() -> None:
    (item,) = shown(answer_of(output([3], [0.1, 0.7, 0.2])), NAMES).items

    assert item.classes[0] == ScoredClass("dog", "0.7", 70.0)


def test_only_the_likeliest_classes_are_shown() -> None:
    names = tuple(f"class {number}" for number in range(1000))
    (item,) = shown(answer_of(output([1, 1000], list(range(1000)))), names).items

    assert [scored.name for scored in item.classes] == [f"class {999 - rank}" for rank in range(5)]
    assert item.hidden_classes == 995


@pytest.mark.parametrize(
    ("datatype", "shape", "data"),
    [("INT64", [1, 3], [1, 2, 3]), ("FP32", [1, 4], [1, 2, 3, 4])],
)
def test_what_is_no_score_keeps_its_values(
    datatype: str, shape: list[int], data: list[int]
) -> None:
    (item,) = shown(answer_of(output(shape, data, datatype)), NAMES).items

    assert (item.classes, item.values) == ((), ", ".join(map(str, data)))


def test_a_score_that_is_no_number_keeps_its_values() -> None:
    (item,) = shown(answer_of(output([1, 3], [0.1, float("nan"), 0.2])), NAMES).items

    assert item == AnsweredItem(values="0.1, nan, 0.2")


def test_values_are_shown_with_type_and_shape() -> None:
    described = shown(answer_of(output([1, 2, 2], [1.23456, 1e-7, 123456.7, -0.5], "FP64")))

    assert described == AnsweredOutput(
        name="y",
        datatype="FP64",
        shape_text="1 \N{MULTIPLICATION SIGN} 2 \N{MULTIPLICATION SIGN} 2",
        items=(AnsweredItem(values="1.235, 0.0000001, 123500, -0.5"),),
        hidden_items=0,
    )


@pytest.mark.parametrize(
    ("datatype", "shape", "data", "values"),
    [
        ("INT64", [1], [1234567], "1234567"),
        ("BOOL", [2], [True, False], "true, false"),
        ("BYTES", [1], ["two, words"], "two, words"),
        ("BYTES", [2], ["a", 'b "c"'], '"a", "b \\"c\\""'),
        ("FP32", [], [2.5], "2.5"),
        ("FP32", [2, 2], [[1, 2], [3, 4]], "1, 2"),
    ],
)
def test_values_read_as_people_write_them(
    datatype: str, shape: list[int], data: list[Any], values: str
) -> None:
    assert shown(answer_of(output(shape, data, datatype))).items[0].values == values


def test_what_is_left_out_is_counted() -> None:
    described = shown(answer_of(output([7, 20], [0] * 140)))

    assert (len(described.items), described.hidden_items, described.has_several) == (5, 2, True)
    assert described.items[0] == AnsweredItem(values=", ".join("0" * 12), hidden_values=8)
    whole = describe_answer(answer_of(*[output([1], [0])] * 23))
    assert whole is not None
    assert (len(whole.outputs), whole.hidden_outputs) == (20, 3)


def test_the_error_of_a_server_is_shown() -> None:
    described = describe_answer('{"error": "unexpected shape for input x"}')

    assert described is not None
    assert (described.error, described.outputs) == ("unexpected shape for input x", ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[" * 100_000,
        "[]",
        '{"outputs": []}',
        '{"outputs": [3]}',
        '{"choices": [{"message": {"content": "Hello."}}]}',
        answer_of({"name": "y", "data": [1, 2]}),
        answer_of(output([2], [1, 2, 3])),
        answer_of(output([-1], [1])),
        answer_of(output([1], [{}])),
        answer_of(output([1], [1]), {"name": "binary", "datatype": "FP32", "shape": [1]}),
    ],
    ids=[str(number) for number in range(12)],
)
def test_any_other_answer_is_not_described(text: str) -> None:
    assert describe_answer(text, NAMES) is None


def test_an_answer_without_items_is_empty() -> None:
    described = shown(answer_of(output([0, 3], [])), NAMES)

    assert (described.items, described.hidden_items, described.shape_text) == (
        (),
        0,
        "0 \N{MULTIPLICATION SIGN} 3",
    )
