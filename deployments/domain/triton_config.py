"""Triton's config.pbtxt for an ONNX model: pure and deterministic, same signature, same text.

With max_batch_size above 0 Triton adds the batch dimension itself, so dims are written without
it. Triton refuses empty dims; a tensor of rank 0 is declared as [ 1 ] and reshaped.
"""

from __future__ import annotations

from deployments.domain.signatures import Signature, Tensor


def render(*, model: str, signature: Signature) -> str:
    """`model` is the directory name in the repository; Triton refuses another one."""
    lines = [
        f"name: {_quote(model)}",
        'backend: "onnxruntime"',
        f"max_batch_size: {signature.max_batch_size}",
        *_tensors("input", signature.inputs, is_batched=signature.is_batched),
        *_tensors("output", signature.outputs, is_batched=signature.is_batched),
        "version_policy: { latest: { num_versions: 1 } }",
    ]
    if signature.is_batched:
        lines.append("dynamic_batching { }")
    return "\n".join(lines) + "\n"


def serving_dims(tensor: Tensor, *, is_batched: bool) -> tuple[int, ...]:
    """The dims that Triton lets a client see, without the batch dimension."""
    return tensor.dims[1:] if is_batched else tensor.dims


def _tensors(kind: str, tensors: tuple[Tensor, ...], *, is_batched: bool) -> list[str]:
    if not tensors:
        return []
    items = ",\n".join(_tensor(tensor, is_batched=is_batched) for tensor in tensors)
    return [f"{kind} [", items, "]"]


def _tensor(tensor: Tensor, *, is_batched: bool) -> str:
    dims = serving_dims(tensor, is_batched=is_batched)
    shape = ", ".join(str(dim) for dim in dims) if dims else "1"
    reshape = "" if dims else " reshape { shape: [ ] }"
    name = _quote(tensor.name)
    return f"  {{ name: {name} data_type: TYPE_{tensor.dtype} dims: [ {shape} ]{reshape} }}"


def _quote(text: str) -> str:
    """A protobuf text string: everything but plain ASCII is escaped byte by byte, in octal."""
    plain = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{plain}"'
