"""Call a deployed model by the Open Inference Protocol (v2) over HTTP.

Inputs are numpy arrays or nested lists. Numbers go as Triton's binary tensors (protocol extension
"binary tensor data"): JSON has no NaN, which is what a missing value of a tree model is.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from slipway_client.errors import (
    ApiError,
    ConnectionFailed,
    InvalidInput,
    UnexpectedAnswer,
    build_error,
)
from slipway_client.types import Tensor

# The key of a caller, for deployments that are not open.
KEY_VARIABLE = "SLIPWAY_CALLER_KEY"
_STRUCT = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT16": "H",
    "UINT32": "I",
    "UINT64": "Q",
    "INT8": "b",
    "INT16": "h",
    "INT32": "i",
    "INT64": "q",
    "FP16": "e",
    "FP32": "f",
    "FP64": "d",
}
_NUMPY = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BYTES": "object",
}
_TYPES = {name: dtype for dtype, name in _NUMPY.items()}
# Triton's type of text in a signature, which the protocol calls otherwise.
_PROTOCOL = {"STRING": "BYTES"}


def infer(
    url: str,
    model: str,
    inputs: Mapping[str, Any],
    *,
    tensors: Sequence[Tensor] = (),
    key: str = "",
    timeout: float = 60.0,
    transport: httpx.BaseTransport | None = None,
) -> dict[str, Any]:
    """Infer the outputs by name: numpy arrays, or nested lists without numpy.

    `url` is the deployment's, `tensors` the inputs of the version's signature, `key` the caller's. No token is
    sent: the address is the gateway's, not the portal's.
    """
    content, headers = pack([encode(name, value, tensors) for name, value in inputs.items()])
    if key:
        headers = {**headers, "x-api-key": key}
    with httpx.Client(timeout=timeout, transport=transport) as http:
        try:
            address = f"{url.rstrip('/')}/v2/models/{model}/infer"
            answer = http.post(address, content=content, headers=headers)
        except httpx.TransportError as error:
            message = f"{url} does not answer ({error or type(error).__name__})."
            raise ConnectionFailed(f"{message} Is the deployment ready?") from error
    return decode_outputs(_body_of(answer, url))


def _body_of(answer: httpx.Response, url: str) -> dict[str, Any]:
    try:
        body = answer.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        body = None
    if answer.is_error:
        raise _refusal(answer, body)
    if not isinstance(body, dict) or "outputs" not in body:
        raise UnexpectedAnswer(f"{url} did not answer with outputs: {answer.text[:200]!r}")
    return body


def _refusal(answer: httpx.Response, body: object) -> ApiError:
    """Return the error with Triton's own message: {"error": …}."""
    detail = str(body.get("error", "")) if isinstance(body, dict) else answer.text[:500]
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        detail = (
            f"{detail} Create a key in the deployment's Callers tab and set {KEY_VARIABLE} to it."
        )
    problem = {"detail": f"The server answered {answer.status_code}: {detail}", "code": "inference"}
    return build_error(answer.status_code, problem)


@dataclass(frozen=True, slots=True)
class InputTensor:
    """An input of an inference request. `data` is row-major."""

    name: str
    datatype: str
    shape: Sequence[int]
    data: Sequence[Any]


def encode(name: str, value: Any, tensors: Sequence[Tensor] = ()) -> InputTensor:
    """Raises InvalidInput for unknown names and types, and for ragged lists."""
    known = {tensor.name: tensor for tensor in tensors}
    if known and name not in known:
        raise InvalidInput(f"The model has no input {name!r}. Inputs: {', '.join(known)}.")
    dtype = known[name].dtype if known else ""
    datatype = _PROTOCOL.get(dtype, dtype)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        flat = value.ravel().tolist()
        return InputTensor(name, datatype or _datatype_of(value.dtype), list(value.shape), flat)
    flat = list(flatten(value))
    return InputTensor(name, datatype or _guess(flat), measure_shape(value), flat)


def pack(inputs: Sequence[InputTensor]) -> tuple[bytes, dict[str, str]]:
    """Return the body of a request and its headers: JSON, then the binary tensors in the same order."""
    described: list[dict[str, Any]] = []
    binary: list[bytes] = []
    for tensor in inputs:
        entry: dict[str, Any] = {
            "name": tensor.name,
            "datatype": tensor.datatype,
            "shape": list(tensor.shape),
        }
        if tensor.datatype in _STRUCT:
            binary.append(_bytes_of(tensor))
            entry["parameters"] = {"binary_data_size": len(binary[-1])}
        else:
            entry["data"] = [_text(item) for item in tensor.data]
        described.append(entry)
    head = json.dumps({"inputs": described}).encode()
    headers = {"Content-Type": "application/octet-stream"}
    headers["Inference-Header-Content-Length"] = str(len(head))
    return b"".join([head, *binary]), headers


def _bytes_of(tensor: InputTensor) -> bytes:
    try:
        return struct.pack(f"<{len(tensor.data)}{_STRUCT[tensor.datatype]}", *tensor.data)
    except (struct.error, OverflowError, TypeError) as error:
        raise InvalidInput(
            f"Input {tensor.name!r} does not fit {tensor.datatype}, the model's type: {error}."
        ) from error


def _text(item: Any) -> Any:
    return item.decode() if isinstance(item, bytes) else item


def decode_outputs(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        output["name"]: _array(output["datatype"], output["shape"], output["data"])
        for output in body["outputs"]
    }


def measure_shape(value: Any) -> list[int]:
    """Raises InvalidInput for lists of unequal lengths."""
    if not isinstance(value, list | tuple):
        return []
    shapes = {tuple(measure_shape(item)) for item in value}
    if len(shapes) > 1:
        raise InvalidInput("Rows have different lengths. Every row needs as many values.")
    return [len(value), *(shapes.pop() if shapes else ())]


def flatten(value: Any) -> Iterable[Any]:
    if not isinstance(value, list | tuple):
        return (value,)
    return itertools.chain.from_iterable(flatten(item) for item in value)


def _datatype_of(dtype: Any) -> str:
    numpy_name = str(dtype.name)
    if numpy_name.startswith(("str", "bytes")):
        return "BYTES"
    if numpy_name not in _TYPES:
        raise InvalidInput(f"Triton has no data type for numpy's {numpy_name}.")
    return _TYPES[numpy_name]


def _guess(flat: Sequence[Any]) -> str:
    """Guess the type of JSON values where no signature is known."""
    if all(isinstance(item, bool) for item in flat):
        return "BOOL"
    if all(isinstance(item, int) for item in flat):
        return "INT64"
    return "BYTES" if any(isinstance(item, str | bytes) for item in flat) else "FP32"


def _array(datatype: str, shape: Sequence[int], data: Any) -> Any:
    try:
        import numpy as np  # noqa: PLC0415  optional
    except ImportError:
        return nest_values(list(flatten(data)), list(shape))
    return np.array(list(flatten(data)), dtype=_NUMPY.get(datatype, "object")).reshape(shape)


def nest_values(flat: list[Any], shape: list[int]) -> Any:
    """Return row-major values as nested lists."""
    for size in reversed(shape[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)] if size else []
    return flat
