"""A first request for a model, in the JSON form of the v2 inference protocol."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from deployments.registry.domain.signatures import Signature, Tensor

# Above this many numbers in all a prefilled body is a burden to the browser; the person pastes one.
MAX_ELEMENTS: Final = 60_000


def infer_request(signature: Signature) -> dict[str, Any]:
    """Zeros (or empty strings) of the right type and shape; a free dimension becomes 1.

    From the input on with which it would be more than MAX_ELEMENTS numbers, `data` is empty, to be
    filled in.
    """
    left, inputs = MAX_ELEMENTS, []
    for tensor in signature.inputs:
        inputs.append(_input(tensor, signature.wire_dims(tensor), most=left))
        left -= len(inputs[-1]["data"])
    return {"inputs": inputs}


def _input(tensor: Tensor, dims: tuple[int, ...], *, most: int) -> dict[str, Any]:
    shape = [max(size, 1) for size in dims]
    zero: object = "" if tensor.protocol_dtype == "BYTES" else 0
    count = prod(shape)
    return {
        "name": tensor.name,
        "datatype": tensor.protocol_dtype,
        "shape": shape,
        "data": [zero] * count if count <= most else [],
    }
