"""Fields of inputs: what a signature asks for, what a person enters, and the request that becomes of it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.registry.domain.signatures import Signature, Tensor
from deployments.serving.domain.request_inputs import (
    InputKind,
    InputText,
    RequestInput,
    build_body,
    default_texts,
    describe_inputs,
    read_texts,
)
from portal.core.definitions import Rejected

_INTEGERS = {f"{sign}INT{bits}": (bits, not sign) for sign in ("", "U") for bits in (8, 16, 32, 64)}


def signature_of(*inputs: Tensor, max_batch_size: int = 0) -> Signature:
    outputs = (Tensor("y", "FP32", (-1, 1)),)
    return Signature(inputs=inputs, outputs=outputs, max_batch_size=max_batch_size)


def input_of(dtype: str, dims: tuple[int, ...], *, max_batch_size: int = 0) -> RequestInput:
    (described,) = describe_inputs(
        signature_of(Tensor("x", dtype, dims), max_batch_size=max_batch_size)
    )
    return described


def tensor(datatype: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {"name": "x", "datatype": datatype, "shape": shape, "data": data}


@pytest.mark.parametrize(
    ("dtype", "dims", "max_batch_size", "kind", "shape", "takes_shape"),
    [
        ("FP32", (-1, 4), 32, InputKind.NUMBERS, "any \N{MULTIPLICATION SIGN} 4", False),
        ("FP32", (-1, 1), 32, InputKind.NUMBER, "any \N{MULTIPLICATION SIGN} 1", False),
        ("INT64", (-1,), 32, InputKind.NUMBER, "any \N{MULTIPLICATION SIGN} 1", False),
        ("INT64", (-1,), 0, InputKind.NUMBERS, "any", False),
        ("INT64", (-1, -1), 32, InputKind.NUMBERS, "any \N{MULTIPLICATION SIGN} any", True),
        (
            "FP16",
            (3, 224, 224),
            0,
            InputKind.NUMBERS,
            "3 \N{MULTIPLICATION SIGN} 224 \N{MULTIPLICATION SIGN} 224",
            False,
        ),
        ("BOOL", (1,), 0, InputKind.NUMBERS, "1", False),
        ("STRING", (-1, 1), 32, InputKind.TEXT, "any \N{MULTIPLICATION SIGN} 1", False),
        ("STRING", (-1, 3), 32, InputKind.TEXTS, "any \N{MULTIPLICATION SIGN} 3", False),
        ("STRING", (-1, -1), 0, InputKind.TEXT, "any \N{MULTIPLICATION SIGN} any", False),
    ],
)
def test_each_input_has_a_field_of_its_kind(
    dtype: str,
    dims: tuple[int, ...],
    max_batch_size: int,
    kind: InputKind,
    shape: str,
    *,
    takes_shape: bool,
) -> None:
    described = input_of(dtype, dims, max_batch_size=max_batch_size)

    assert (described.kind, described.shape_text) == (kind, shape)
    assert described.takes_shape is takes_shape


@pytest.mark.parametrize(
    "inputs",
    [
        (),
        (Tensor("x", "BF16", (4,)),),
        (Tensor("x", "FP32", (0, 4)),),
        (Tensor("x", "FP32", (1024, 1024)),),
        tuple(Tensor(f"x{number}", "FP32", (1,)) for number in range(21)),
    ],
    ids=["unknown", "no JSON type", "no value", "too large", "too many"],
)
def test_what_only_json_can_say_has_no_fields(inputs: tuple[Tensor, ...]) -> None:
    assert describe_inputs(signature_of(*inputs)) == ()


@pytest.mark.parametrize(
    ("dtype", "dims", "text", "sent"),
    [
        ("FP32", (-1, 2), InputText("1, 2.5, -3e2, .5"), tensor("FP32", [2, 2], [1, 2.5, -300.0, 0.5])),
        ("FP32", (-1, 2), InputText("[[1 2]\n [3 4]]"), tensor("FP32", [2, 2], [1, 2, 3, 4])),
        ("FP32", (2, 2), InputText(""), tensor("FP32", [2, 2], [0, 0, 0, 0])),
        ("INT64", (-1, -1), InputText("5, 6, 7"), tensor("INT64", [1, 3], [5, 6, 7])),
        ("INT64", (-1, -1), InputText("5, 6, 7, 8", "2, 2"), tensor("INT64", [2, 2], [5, 6, 7, 8])),
        ("INT64", (-1, -1), InputText("5 6 7 8", "4 \N{MULTIPLICATION SIGN} 1"), tensor("INT64", [4, 1], [5, 6, 7, 8])),
        ("INT64", (-1, -1), InputText("", "2, 2"), tensor("INT64", [2, 2], [0, 0, 0, 0])),
        ("UINT64", (1,), InputText("18446744073709551615"), tensor("UINT64", [1], [2**64 - 1])),
        ("BOOL", (2,), InputText("true, 0"), tensor("BOOL", [2], [True, False])),
        ("STRING", (1, 1), InputText("two\r\nlines, one text"), tensor("BYTES", [1, 1], ["two\nlines, one text"])),
        ("STRING", (-1, 2), InputText("a\r\n b \nc\n"), tensor("BYTES", [2, 2], ["a", " b ", "c", ""])),
        ("STRING", (2,), InputText(""), tensor("BYTES", [2], ["", ""])),
    ],
)  # fmt: skip
def test_what_is_entered_becomes_the_request(
    dtype: str, dims: tuple[int, ...], text: InputText, sent: dict[str, Any]
) -> None:
    body = build_body([input_of(dtype, dims)], [text])

    assert json.dumps(body) == json.dumps({"inputs": [sent]})


@pytest.mark.parametrize(
    ("dtype", "dims", "text", "field", "message"),
    [
        ("FP32", (2, 2), InputText("1, 2, 3"), "input-0", "Enter 4 values, not 3."),
        ("FP32", (-1, 2), InputText("1, 2, 3"), "input-0", "Enter a multiple of 2 values, not 3."),
        ("FP32", (2,), InputText("1, two"), "input-0", "Enter finite numbers, not “two”."),
        ("FP32", (1,), InputText("1e999"), "input-0", "Enter finite numbers, not “1e999”."),
        ("FP32", (1,), InputText("NaN"), "input-0", "Enter finite numbers, not “NaN”."),
        ("FP32", (1,), InputText("1 2"), "input-0", "Enter one value, not 2."),
        ("INT8", (1,), InputText("128"), "input-0", "Enter whole numbers from -128 to 127, not “128”."),
        ("UINT8", (1,), InputText("-1"), "input-0", "Enter whole numbers from 0 to 255, not “-1”."),
        ("INT32", (1,), InputText("1.5"), "input-0", "Enter whole numbers, not “1.5”."),
        ("INT32", (1,), InputText("٣"), "input-0", "Enter whole numbers, not “٣”."),
        ("BOOL", (1,), InputText("yes"), "input-0", "Enter true or false, not “yes”."),
        ("STRING", (3,), InputText("a\nb"), "input-0", "Enter 3 values, not 2."),
        ("INT64", (-1, -1), InputText("1", "one"), "shape-0", "Enter a shape such as 1, 1."),
        ("INT64", (-1, -1, 2), InputText("1", "1, 2, 3"), "shape-0", "Enter a shape that fits any \N{MULTIPLICATION SIGN} any \N{MULTIPLICATION SIGN} 2."),
        ("INT64", (-1, -1), InputText("1", "0, 4"), "shape-0", "Enter a shape that fits any \N{MULTIPLICATION SIGN} any."),
        ("INT64", (-1, -1), InputText("1, 2", "1, 3"), "input-0", "Enter 3 values for this shape, not 2."),
        ("INT64", (-1, -1), InputText("", "9999, 9999"), "shape-0", "Enter a shape of at most 1,000,000 values."),
    ],
)  # fmt: skip
def test_what_makes_no_request_is_refused_at_its_field(
    dtype: str, dims: tuple[int, ...], text: InputText, field: str, message: str
) -> None:
    with pytest.raises(Rejected) as refused:
        build_body([input_of(dtype, dims)], [text])

    assert refused.value.fields == {field: message}
    assert refused.value.message == f"x: {message}"


def test_every_input_that_is_wrong_is_named() -> None:
    inputs = describe_inputs(signature_of(Tensor("a", "FP32", (1,)), Tensor("b", "INT8", (2,))))

    with pytest.raises(Rejected) as refused:
        build_body(inputs, [InputText("x"), InputText("1")])

    assert refused.value.fields == {
        "input-0": "Enter finite numbers, not “x”.",
        "input-1": "Enter 2 values, not 1.",
    }


def test_few_zeros_are_written_out_and_many_are_an_empty_field() -> None:
    inputs = describe_inputs(
        signature_of(
            Tensor("few", "FP32", (-1, 3)),
            Tensor("many", "FP32", (-1, 3, 32, 32)),
            Tensor("flag", "BOOL", (1,)),
            Tensor("text", "STRING", (1,)),
        )
    )

    texts = default_texts(inputs)

    assert [text.values for text in texts] == ["0, 0, 0", "", "false", ""]
    assert inputs[1].hint == "Comma-separated. Leave empty to send 3,072 zeros."
    assert read_texts(inputs, build_body(inputs, texts)) == texts


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"inputs": []},
        {"inputs": {}},
        {"inputs": [3]},
        {"inputs": [tensor("FP32", [1, 2], [1, 2])], "id": "7"},
        {"inputs": [{**tensor("FP32", [1, 2], [1, 2]), "parameters": {}}]},
        {"inputs": [{**tensor("FP32", [1, 2], [1, 2]), "name": "z"}]},
        {"inputs": [{**tensor("FP32", [1, 2], [1, 2]), "name": []}]},
        {"inputs": [tensor("FP32", [1, 2], [1, 2])] * 2},
        {"inputs": [tensor("FP64", [1, 2], [1, 2])]},
        {"inputs": [tensor("FP32", [2, 2], [1, 2])]},
        {"inputs": [tensor("FP32", [1, 2], [1, "a"])]},
        {"inputs": [tensor("FP32", [1, 2], [1, True])]},
        {"inputs": [tensor("FP32", [1, 2], [1, None])]},
        {"inputs": [{**tensor("FP32", [1, 2], []), "data": "1, 2"}]},
        {"inputs": [{**tensor("FP32", [1, 2], [1, 2]), "shape": "1, 2"}]},
    ],
)
def test_a_request_that_the_fields_cannot_express_has_no_texts(body: dict[str, Any]) -> None:
    assert read_texts([input_of("FP32", (-1, 2))], body) is None


@pytest.mark.parametrize("data", [["a", "b"], ["a\rb"], ["a\x00b"], [3]])
def test_a_text_that_a_field_cannot_hold_has_no_texts(data: list[Any]) -> None:
    body = {"inputs": [tensor("BYTES", [len(data)], data)]}

    assert read_texts([input_of("STRING", (-1,))], body) is None


def test_nested_data_reads_like_flat_data() -> None:
    body = {"inputs": [tensor("FP32", [2, 2], [[1, 2], [3, 4.5]])]}

    assert read_texts([input_of("FP32", (-1, 2))], body) == (InputText("1, 2, 3, 4.5"),)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Signature, dict[str, Any]]:
    """Draw a signature with a request that fields can express: one item where a field holds one."""
    inputs, rows = [], []
    for index in range(draw(st.integers(1, 4))):
        dtype = draw(st.sampled_from([*_INTEGERS, "FP16", "FP32", "FP64", "BOOL", "STRING"]))
        dims = draw(st.lists(st.sampled_from([-1, 1, 2, 3]), min_size=1, max_size=3))
        known = Tensor(f"x{index}", dtype, tuple(dims))
        inputs.append(known)
        (described,) = describe_inputs(signature_of(known))
        is_one = described.kind in {InputKind.NUMBER, InputKind.TEXT}
        sizes = st.just(1) if is_one else st.integers(1, 3)
        shape = [draw(sizes) if size == -1 else size for size in dims]
        values = draw(
            st.lists(
                _values(dtype, described), min_size=math.prod(shape), max_size=math.prod(shape)
            )
        )
        datatype = "BYTES" if dtype == "STRING" else dtype
        rows.append({"name": known.name, "datatype": datatype, "shape": shape, "data": values})
    return signature_of(*inputs), {"inputs": rows}


def _values(dtype: str, described: RequestInput) -> st.SearchStrategy[Any]:
    if dtype in _INTEGERS:
        bits, is_signed = _INTEGERS[dtype]
        least = -(2 ** (bits - 1)) if is_signed else 0
        return st.one_of(st.just(0), st.integers(least, least + 2**bits - 1))
    if dtype == "STRING":
        unseen = "\r\x00" if described.kind == InputKind.TEXT else "\r\x00\n"
        return st.text(
            st.characters(exclude_characters=unseen, exclude_categories=["Cs"]), max_size=5
        )
    if dtype == "BOOL":
        return st.booleans()
    return st.one_of(
        st.just(0), st.integers(-999, 999), st.floats(allow_nan=False, allow_infinity=False)
    )


@given(requests())
def test_every_request_that_fields_can_express_survives_them(
    drawn: tuple[Signature, dict[str, Any]],
) -> None:
    signature, body = drawn
    inputs = describe_inputs(signature)

    texts = read_texts(inputs, body)

    assert texts is not None
    assert json.dumps(build_body(inputs, texts)) == json.dumps(body)


@given(
    st.text(st.sampled_from("0123456789.-+e, \n[]tx\N{MULTIPLICATION SIGN}")),
    st.text(st.sampled_from("0123, \N{MULTIPLICATION SIGN}")),
    st.sampled_from(["FP32", "INT8", "UINT64", "BOOL", "STRING"]),
    st.lists(st.sampled_from([-1, 1, 2]), min_size=1, max_size=3),
)
def test_every_entry_makes_a_request_that_reads_back_or_is_refused(
    values: str, shape: str, dtype: str, dims: list[int]
) -> None:
    item = input_of(dtype, tuple(dims))
    try:
        body = build_body([item], [InputText(values, shape)])
    except Rejected as refused:
        wrong, body = set(refused.fields), None

    if body is None:
        assert wrong <= {"input-0", "shape-0"}
        return
    texts = read_texts([item], body)

    assert texts is not None
    assert json.dumps(build_body([item], texts)) == json.dumps(body)
