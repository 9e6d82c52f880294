"""A first request for a model, in the JSON form of the v2 inference protocol."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from deployments.domain.signatures import Signature, Tensor

# Above this many numbers a prefilled body is a burden to the browser; the person pastes one.
MAX_ELEMENTS: Final = 60_000


def infer_request(signature: Signature) -> dict[str, Any]:
    """Zeros (or empty strings) of the right type and shape; a free dimension becomes 1.

    Inputs of more than MAX_ELEMENTS numbers get an empty `data`, to be filled in.
    """
    return {"inputs": [_input(tensor, signature.wire_dims(tensor)) for tensor in signature.inputs]}


def _input(tensor: Tensor, dims: tuple[int, ...]) -> dict[str, Any]:
    shape = [max(size, 1) for size in dims]
    zero: object = "" if tensor.protocol_dtype == "BYTES" else 0
    count = prod(shape)
    return {
        "name": tensor.name,
        "datatype": tensor.protocol_dtype,
        "shape": shape,
        "data": [zero] * count if count <= MAX_ELEMENTS else [],
    }
