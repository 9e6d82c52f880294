"""Comparing answers: exact where they must be equal, within tolerance where they are rounded."""

import math

import pytest

from deployments.quality.domain import output_comparison
from deployments.quality.domain.output_comparison import BadOutputs, Output, Tolerance


def scores(*values: float, name: str = "scores", datatype: str = "FP32") -> Output:
    return Output(name, datatype, (1, len(values)), values)


def test_a_float_agrees_up_to_absolute_plus_relative_tolerance() -> None:
    allowed = {"scores": Tolerance(absolute=0.5, relative=0.1)}

    within = output_comparison.compare([scores(10.0)], [scores(11.5)], allowed)
    beyond = output_comparison.compare([scores(10.0)], [scores(11.75)], allowed)

    assert within[0].is_within
    assert not beyond[0].is_within
    assert beyond[0].mismatch == ("element 1 of 1 is 11.75, expected 10: off by 1.75, allowed 1.5")
    assert (beyond[0].largest_absolute, beyond[0].largest_relative) == (1.75, 0.175)


def test_without_a_tolerance_each_datatype_has_its_default() -> None:
    single = output_comparison.compare([scores(1.0)], [scores(1.001)], {})
    double = output_comparison.compare(
        [scores(1.0, datatype="FP64")], [scores(1.001, datatype="FP64")], {}
    )

    assert single[0].is_within
    assert not double[0].is_within


def test_whole_numbers_and_texts_agree_only_when_equal_whatever_tolerance_is_given() -> None:
    allowed = {"ids": Tolerance(10, 1), "label": Tolerance(10, 1)}
    expected = [Output("ids", "INT64", (2,), (7, 8)), Output("label", "BYTES", (1,), ("cat",))]
    got = [Output("ids", "INT64", (2,), (7, 9)), Output("label", "BYTES", (1,), ("dog",))]

    differences = output_comparison.compare(expected, got, allowed)

    assert [difference.mismatch for difference in differences] == [
        "element 2 of 2 is 9, expected 8: off by 1",
        "element 1 of 1 is 'dog', expected 'cat'",
    ]
    assert [(difference.beyond, difference.largest_absolute) for difference in differences] == [
        (1, 1),
        (1, None),
    ]


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ([], "missing from the response"),
        ([Output("scores", "FP32", (2, 1), (1.0, 2.0))], "its shape is [2, 1], expected [1, 2]"),
        ([Output("scores", "INT32", (1, 2), (1, 2))], "it is INT32, expected FP32"),
    ],
)
def test_a_missing_or_misfitting_output_is_wrong_as_a_whole(
    got: list[Output], message: str
) -> None:
    differences = output_comparison.compare([scores(1.0, 2.0)], got, {})

    assert [
        (difference.mismatch, difference.beyond, difference.elements) for difference in differences
    ] == [(message, 2, 2)]


def test_another_float_width_is_compared_as_numbers_and_more_outputs_do_no_harm() -> None:
    got = [scores(1.0, datatype="FP64"), scores(5.0, name="more")]

    assert output_comparison.compare([scores(1.0)], got, {})[0].is_within


def test_not_a_number_agrees_with_itself_and_with_nothing_else() -> None:
    nan, infinite = math.nan, math.inf

    assert output_comparison.compare([scores(nan, infinite)], [scores(nan, infinite)], {})[
        0
    ].is_within
    differences = output_comparison.compare([scores(1.0)], [scores(nan)], {})[0]
    assert (differences.is_within, differences.largest_absolute) == (False, 0.0)
    assert not output_comparison.compare([scores(infinite)], [scores(-infinite)], {})[0].is_within


def test_an_answer_is_read_flat_however_deep_it_is_nested() -> None:
    row = {"name": "a", "datatype": "FP32", "shape": [2, 2], "data": [[1, 2], [3, 4]]}

    assert output_comparison.read({"outputs": [row]})[0].data == (1.0, 2.0, 3.0, 4.0)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadOutputs, match="0 elements"):
        output_comparison.read_one({"name": "a", "datatype": "FP32", "shape": [1], "data": deep})


@pytest.mark.parametrize(
    "row",
    [
        {"datatype": "FP32", "shape": [1], "data": [1]},
        {"name": "a", "datatype": "FP32", "shape": [2], "data": [1]},
        {"name": "a", "datatype": "FP32", "shape": [1], "data": ["x"]},
        {"name": "a", "datatype": "FP32", "shape": [1], "data": [10**400]},
        {"name": "a", "datatype": "INT64", "shape": [1], "data": [1.5]},
        {"name": "a", "datatype": "INT64", "shape": [1], "data": [True]},
        {"name": "a", "datatype": "BYTES", "shape": [1], "data": [1]},
        {"name": "a", "datatype": "FP32", "shape": [-1], "data": []},
        {"name": "a", "datatype": "FP32", "shape": "1", "data": [1]},
    ],
)
def test_what_is_no_output_is_refused(row: dict[str, object]) -> None:
    with pytest.raises(BadOutputs):
        output_comparison.read({"outputs": [row]})
