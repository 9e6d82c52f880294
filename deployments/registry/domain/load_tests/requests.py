"""Requests in Triton's binary form, generated from a signature."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from deployments.registry.domain import trial_inputs
from deployments.registry.domain.forests.comparison import Sample
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.registry.domain.trial_inputs import Input

# Element types of ONNX Runtime, which generated inputs are named by.
_KINDS: Final = {
    "FP32": "float",
    "FP64": "double",
    "FP16": "float16",
    "BF16": trial_inputs.BFLOAT16,
}
# A sequence of one request, for models that batch sequences; others take no notice.
_PARAMETERS: Final = {
    "binary_data_output": True,
    "sequence_id": 1,
    "sequence_start": True,
    "sequence_end": True,
}


def is_any_request_valid(signature: Signature) -> bool:
    """Whether only numbers of free range in fixed shapes are taken, so that a model has to answer."""
    return all(
        tensor.dtype in _KINDS and all(dim > 0 for dim in _dims_of_item(tensor, signature))
        for tensor in signature.inputs
    )


def reason_for_none(signature: Signature) -> str:
    """Say why no request is generated. Empty if one is."""
    inputs = [_input_of(tensor, signature) for tensor in signature.inputs]
    if not trial_inputs.can_make(inputs):
        return "inputs of its types are not generated"
    shapes = (trial_inputs.shapes_of(inputs, policy) for policy in trial_inputs.POLICIES)
    if all(alternative is None for alternative in shapes):
        limit = trial_inputs.MAX_ITEM_BYTES // 2**20
        return f"its inputs are larger than the {limit} MiB that are generated"
    return ""


def requests_of(signature: Signature) -> Iterator[tuple[int, bytes]]:
    """Yield alternatives of one item, each with the length of its header."""
    inputs = [_input_of(tensor, signature) for tensor in signature.inputs]
    if not trial_inputs.can_make(inputs):
        return
    for policy in trial_inputs.POLICIES:
        item = trial_inputs.make_item(inputs, policy, 0, {})
        if item is not None:
            yield _request(signature, item)


def sample_requests(signature: Signature, sample: Sample) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of a sample in batches, each with the length of its header, for a model of one input."""
    rows = sample.read_rows()
    for start in range(0, len(rows), signature.max_batch_size):
        batch = rows[start : start + signature.max_batch_size]
        yield _request(signature, {signature.inputs[0].name: batch})


def describe_sample(signature: Signature, sample: Sample) -> Iterator[dict[str, Any]]:
    """Yield the same batches for a program that builds requests itself, with the values in base64."""
    rows = sample.read_rows()
    for start in range(0, len(rows), signature.max_batch_size):
        batch = rows[start : start + signature.max_batch_size]
        tensor = {
            "name": signature.inputs[0].name,
            "datatype": signature.inputs[0].protocol_dtype,
            "shape": list(batch.shape),
            "values": base64.b64encode(batch.tobytes()).decode(),
        }
        yield {"inputs": [tensor]}


def alternatives_of(signature: Signature) -> Iterator[dict[str, Any]]:
    """Yield shapes of the same requests, for a program that makes the values itself; integers are below `below`."""
    inputs = [_input_of(tensor, signature) for tensor in signature.inputs]
    if not trial_inputs.can_make(inputs):
        return
    for policy in trial_inputs.POLICIES:
        shapes = trial_inputs.shapes_of(inputs, policy)
        if shapes is not None:
            named = zip(signature.inputs, shapes, strict=True)
            tensors = [
                {
                    "name": tensor.name,
                    "datatype": tensor.protocol_dtype,
                    "shape": list(shape if signature.is_batched else shape[1:]),
                }
                for tensor, shape in named
            ]
            yield {"below": policy.below, "inputs": tensors}


def _dims_of_item(tensor: Tensor, signature: Signature) -> tuple[int, ...]:
    return tensor.dims[1:] if signature.is_batched else tensor.dims


def _input_of(tensor: Tensor, signature: Signature) -> Input:
    """Return the input to generate. It always has a batch dimension, which a model without batching loses again."""
    dims = signature.wire_dims(tensor)
    shape = tuple(dim if dim > 0 else None for dim in dims)
    kind = _KINDS.get(tensor.dtype, tensor.dtype.lower())
    return Input(tensor.name, kind, shape if signature.is_batched else (None, *shape))


def _request(signature: Signature, item: Mapping[str, Any]) -> tuple[int, bytes]:
    described, bodies = [], []
    for tensor in signature.inputs:
        values = item[tensor.name] if signature.is_batched else item[tensor.name][0]
        body = (
            _texts(values) if tensor.dtype == "STRING" else np.ascontiguousarray(values).tobytes()
        )
        bodies.append(body)
        described.append(
            {
                "name": tensor.name,
                "datatype": tensor.protocol_dtype,
                "shape": list(values.shape),
                "parameters": {"binary_data_size": len(body)},
            }
        )
    head = json.dumps({"inputs": described, "parameters": _PARAMETERS}).encode()
    return len(head), head + b"".join(bodies)


def _texts(values: Any) -> bytes:
    parts = [str(value).encode() for value in values.ravel()]
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)
