"""A first request for a model, in the JSON form of the v2 inference protocol."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from deployments.registry.domain.signatures import Signature, Tensor

# A larger prefilled body slows the browser down; users paste their own.
MAX_ELEMENTS: Final = 60_000


def infer_request(signature: Signature) -> dict[str, Any]:
    """Return a request of zeros or empty strings with the type and shape of each input. Dynamic dimensions
    become 1.

    `data` is empty from the input that would exceed MAX_ELEMENTS elements in total.
    """
    remaining, inputs = MAX_ELEMENTS, []
    for tensor in signature.inputs:
        inputs.append(_input(tensor, signature.wire_dims(tensor), max_elements=remaining))
        remaining -= len(inputs[-1]["data"])
    return {"inputs": inputs}


def _input(tensor: Tensor, dims: tuple[int, ...], *, max_elements: int) -> dict[str, Any]:
    shape = [max(size, 1) for size in dims]
    zero: object = "" if tensor.protocol_dtype == "BYTES" else 0
    count = prod(shape)
    return {
        "name": tensor.name,
        "datatype": tensor.protocol_dtype,
        "shape": shape,
        "data": [zero] * count if count <= max_elements else [],
    }
