"""What a golden request may hold, and when a server's signature is the version's."""

from typing import Any

import pytest

from deployments.quality.domain import golden_requests
from deployments.registry.domain.signatures import Signature, Tensor
from portal.core.definitions import Rejected

SIGNATURE = Signature(
    inputs=(Tensor("x", "FP32", (-1, 3)), Tensor("text", "STRING", (-1, 1))),
    outputs=(Tensor("y", "FP32", (-1, 2)),),
    max_batch_size=8,
)
X = {"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}
TEXT = {"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": ["a"]}
Y = {"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [0.25, 0.75]}


def test_a_fitting_request_is_kept_without_its_id() -> None:
    kept = golden_requests.check_request({"id": "1", "inputs": [X, TEXT]}, SIGNATURE)

    assert kept == {"inputs": [X, TEXT]}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([X], "lacks text"),
        ([{**X, "name": "z"}, TEXT], "has no z"),
        ([{**X, "datatype": "INT32"}, TEXT], "is INT32, but must be FP32"),
        ([{**X, "shape": [1, 2], "data": [1, 2]}, TEXT], "must fit"),
        ([{**X, "data": [1, 2]}, TEXT], "has 2 elements"),
        ([{**X, "data": [1, 2, float("nan")]}, TEXT], "NaN"),
        ([X, {**TEXT, "data": ["\0"]}], "zero byte"),
        ([X, {**TEXT, "data": ["a" * golden_requests.MOST_BYTES]}], "the limit is 262,144"),
        ([], "no list of inputs"),
    ],
)
def test_a_request_that_the_model_would_refuse_is_not_saved(
    inputs: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(Rejected, match=message) as caught:
        golden_requests.check_request({"inputs": inputs}, SIGNATURE)
    assert set(caught.value.fields) == {"request"}


@pytest.mark.parametrize(
    ("part", "value", "fields"),
    [
        (
            "request",
            {"inputs": [X, {**TEXT, "zzunknown": 1}]},
            {"request.inputs[1].zzunknown": 'There is no field "zzunknown". Remove it.'},
        ),
        (
            "request",
            {"inputs": [X, TEXT], "parameter": {}},
            {"request.parameter": 'There is no field "parameter". Did you mean "parameters"?'},
        ),
        (
            "expected",
            [{**Y, "datatyp": "FP32"}],
            {"expected[0].datatyp": 'There is no field "datatyp". Did you mean "datatype"?'},
        ),
        (
            "expected",
            {"outputs": [{**Y, "zzunknown": 1}]},
            {"expected.outputs[0].zzunknown": 'There is no field "zzunknown". Remove it.'},
        ),
        (
            "expected",
            {"outputs": [Y], "model_nam": "m"},
            {"expected.model_nam": 'There is no field "model_nam". Did you mean "model_name"?'},
        ),
    ],
)
def test_an_unknown_field_is_named_with_its_place(
    part: str, value: Any, fields: dict[str, str]
) -> None:
    check = {
        "request": golden_requests.check_request,
        "expected": golden_requests.check_expected,
    }[part]

    with pytest.raises(Rejected) as caught:
        check(value, SIGNATURE)
    assert caught.value.fields == fields


def test_the_expected_answer_may_be_whole_or_its_outputs_alone() -> None:
    whole = golden_requests.check_expected({"model_name": "m", "outputs": [Y]}, SIGNATURE)

    assert whole == golden_requests.check_expected([Y], SIGNATURE) == [Y]
    with pytest.raises(Rejected, match="has no z"):
        golden_requests.check_expected([{**Y, "name": "z"}], SIGNATURE)


def test_tolerances_are_for_float_outputs_that_are_expected() -> None:
    assert golden_requests.check_tolerances({"y": {"relative": 0.01}}, [Y]) == {
        "y": {"absolute": 0.0, "relative": 0.01}
    }
    label = {"name": "label", "datatype": "BYTES"}
    refused: list[Any] = [
        {"z": {}},
        {"y": {"absolute": -1}},
        {"y": {"relative": 1.5}},
        {"y": {"absolute": float("inf")}},
        {"y": {"absolute": True}},
        {"y": 1},
        {"label": {"absolute": 1}},
        [],
    ]
    for wrong in refused:
        with pytest.raises(Rejected):
            golden_requests.check_tolerances(wrong, [Y, label])


def test_a_lone_number_per_item_is_one_dimension_on_the_wire() -> None:
    signature = Signature(
        inputs=(Tensor("x", "FP32", (-1,)),),
        outputs=(Tensor("label", "FP32", (-1,)),),
        max_batch_size=8,
    )
    label = {"name": "label", "datatype": "FP32", "shape": [2, 1], "data": [0.5, 1.0]}
    server = [{"datatype": "FP32", "shape": [-1, 1]}]

    assert golden_requests.check_expected([label], signature) == [label]
    assert golden_requests.check_request({"inputs": [{**label, "name": "x"}]}, signature)["inputs"]
    assert not golden_requests.signature_problem(
        signature,
        {"inputs": [{**server[0], "name": "x"}], "outputs": [{**server[0], "name": "label"}]},
    )
    with pytest.raises(Rejected, match=r"has shape \[2\], but must fit \[-1, 1\]"):
        golden_requests.check_expected([{**label, "shape": [2]}], signature)


def reported(**changed: Any) -> dict[str, Any]:
    return {
        "inputs": [
            {"name": "x", "datatype": "FP32", "shape": [-1, 3]},
            {"name": "text", "datatype": "BYTES", "shape": [-1, 1]},
        ],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}],
        **changed,
    }


def test_a_signature_matches_when_names_datatypes_and_shapes_do() -> None:
    more = [*reported()["outputs"], {"name": "also", "datatype": "FP32", "shape": [1]}]

    assert golden_requests.signature_problem(SIGNATURE, reported()) == ""
    assert golden_requests.signature_problem(SIGNATURE, reported(outputs=more)) == ""
    assert golden_requests.signature_problem(Signature((), ()), reported()) == ""


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([], "output y is not reported by the server"),
        (
            [{"name": "y", "datatype": "INT64", "shape": [-1, 2]}],
            "output y is INT64 at the server, FP32 in the file",
        ),
        (
            [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}],
            "output y has shape [-1, 3] at the server, [-1, 2] in the file",
        ),
    ],
)
def test_what_differs_from_the_signature_is_named(outputs: Any, message: str) -> None:
    assert golden_requests.signature_problem(SIGNATURE, reported(outputs=outputs)) == message


def test_a_missing_input_is_named() -> None:
    extra = {"name": "mask", "datatype": "FP32", "shape": [1]}
    inputs = [*reported()["inputs"], extra]

    assert golden_requests.signature_problem(SIGNATURE, reported(inputs=inputs)) == (
        "the server needs an unknown input mask"
    )
