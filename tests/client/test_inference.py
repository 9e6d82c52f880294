"""Inference requests: binary tensors, types of the signature, refusals. A real Triton answers them in
tests/e2e (the quickstart notebook and the MLflow plugin).
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import httpx
import numpy as np
import pytest

from slipway_client import (
    ConnectionFailed,
    InvalidInput,
    InvalidRequest,
    TokenRefused,
    UnexpectedAnswer,
    inference,
)
from slipway_client.types import Signature, Tensor

FLOATS = (Tensor(name="x", dtype="FP32", dims=(-1, 2)),)


def sent(inputs: dict[str, Any], tensors: tuple[Tensor, ...] = ()) -> tuple[dict[str, Any], bytes]:
    """The JSON part and the binary part of the request."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={"outputs": []})

    transport = httpx.MockTransport(answer)
    inference.infer("http://gateway/m/", "detector", inputs, tensors=tensors, transport=transport)
    (request,) = requests
    assert str(request.url) == "http://gateway/m/v2/models/detector/infer"
    head = int(request.headers["Inference-Header-Content-Length"])
    return json.loads(request.content[:head]), request.content[head:]


def test_lists_get_the_type_of_the_signature_and_keep_missing_values() -> None:
    described, binary = sent({"x": [[1, math.nan], [3, 4]]}, FLOATS)

    assert described["inputs"] == [
        {
            "name": "x",
            "datatype": "FP32",
            "shape": [2, 2],
            "parameters": {"binary_data_size": 16},
        }
    ]
    values = struct.unpack("<4f", binary)
    assert math.isnan(values[1])
    assert (values[0], *values[2:]) == (1.0, 3.0, 4.0)


@pytest.mark.parametrize("dtype", [name for name in inference._NUMPY if name != "BYTES"])
def test_arrays_of_every_type_arrive_as_they_are(dtype: str) -> None:
    array = np.array([[0, 1], [1, 0]], dtype=inference._NUMPY[dtype])

    described, binary = sent({"x": array})

    assert described["inputs"][0]["datatype"] == dtype
    assert binary == array.tobytes()


def test_text_goes_as_json() -> None:
    described, binary = sent(
        {"text": [["a", b"b"]]}, (Tensor(name="text", dtype="STRING", dims=(1,)),)
    )

    assert described["inputs"] == [
        {"name": "text", "datatype": "BYTES", "shape": [1, 2], "data": ["a", "b"]}
    ]
    assert binary == b""


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"y": [[1.0, 2.0]]}, "no input 'y'. Inputs: x"),
        ({"x": [[1.0], [1.0, 2.0]]}, "different lengths"),
        ({"x": [["one", "two"]]}, "does not fit FP32"),
        ({"x": np.array([["2020-01-01"]], dtype="datetime64[D]")}, "does not fit FP32"),
    ],
)
def test_inputs_that_cannot_be_sent_are_refused_here(inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sent(inputs, FLOATS)


def test_numbers_that_do_not_fit_are_not_wrapped() -> None:
    with pytest.raises(InvalidInput, match="does not fit INT8"):
        sent({"x": [[300, 0]]}, (Tensor(name="x", dtype="INT8", dims=(1, 2)),))


def answered(response: httpx.Response) -> dict[str, Any]:
    transport = httpx.MockTransport(lambda _: response)
    return inference.infer("http://gateway/m", "m", {"x": [1]}, transport=transport)


def test_outputs_are_arrays_of_their_shape() -> None:
    body = (
        '{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 2], "data": [1, NaN, 3, 4]}]}'
    )

    outputs = answered(httpx.Response(200, text=body))

    assert (outputs["y"].shape, outputs["y"].dtype) == ((2, 2), np.dtype("float32"))
    assert math.isnan(outputs["y"][0, 1])


def test_without_numpy_outputs_are_nested_lists() -> None:
    assert inference.nest_values([1, 2, 3, 4, 5, 6], [3, 2]) == [[1, 2], [3, 4], [5, 6]]
    assert inference.nest_values([1, 2], [2]) == [1, 2]


def test_refusals_of_the_server_have_its_own_words() -> None:
    with pytest.raises(InvalidRequest, match="answered 400: unexpected shape for input 'x'"):
        answered(httpx.Response(400, json={"error": "unexpected shape for input 'x'"}))
    with pytest.raises(UnexpectedAnswer, match="did not answer with outputs"):
        answered(httpx.Response(200, text="<html>sign in</html>"))


def test_a_server_that_is_not_there_is_named() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(ConnectionFailed, match=r"http://gateway/m does not answer .* ready\?"):
        inference.infer("http://gateway/m", "m", {"x": [1]}, transport=httpx.MockTransport(refuse))


def test_a_key_is_sent_as_the_gateway_reads_it_and_none_without_one() -> None:
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("x-api-key"))
        return httpx.Response(200, json={"outputs": []})

    transport = httpx.MockTransport(answer)
    for key in ("k-1", ""):
        inference.infer("http://gateway/m", "m", {"x": [1.0]}, key=key, transport=transport)

    assert seen == ["k-1", None]


def test_a_refused_key_says_where_one_is_made() -> None:
    transport = httpx.MockTransport(
        lambda _: httpx.Response(401, text="Client authentication failed.")
    )

    with pytest.raises(TokenRefused) as raised:
        inference.infer("http://gateway/m", "m", {"x": [1.0]}, transport=transport)

    assert str(raised.value) == (
        "The server answered 401: Client authentication failed. Create a key in the deployment's "
        "Callers tab and set SLIPWAY_CALLER_KEY to it."
    )


@pytest.mark.parametrize(
    ("names", "scores", "named"),
    [
        (("cat", "dog"), [[0.25, 0.75]], [{"cat": 0.25, "dog": 0.75}]),
        (("no", "yes"), [[0.75]], [{"no": 0.25, "yes": 0.75}]),
        (("no", "yes"), np.array([[0.5]], "float32"), [{"no": 0.5, "yes": 0.5}]),
    ],
)
def test_scores_are_named_by_their_classes(names: Any, scores: Any, named: Any) -> None:
    signature = Signature(inputs=(), outputs=(), max_batch_size=0, class_names=names)

    assert signature.name_scores(scores) == named
