"""Read an ONNX file without running it: signature, opset, parameters, what it needs besides.

Only the protobuf is parsed; no operator is executed and no file outside is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import onnx
from google.protobuf.message import DecodeError

from deployments.domain.signatures import Signature, Tensor, detect_max_batch_size

# A protobuf message cannot be larger.
LARGEST_BYTES: Final = 2**31 - 1
# Shape inference copies the model; above this only the declared shapes are used.
_INFER_UP_TO_BYTES: Final = 512 * 2**20
# Operators of these domains come with Triton's ONNX Runtime backend.
STANDARD_DOMAINS: Final = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
_DTYPES: Final = {
    onnx.TensorProto.BOOL: "BOOL",
    onnx.TensorProto.UINT8: "UINT8",
    onnx.TensorProto.UINT16: "UINT16",
    onnx.TensorProto.UINT32: "UINT32",
    onnx.TensorProto.UINT64: "UINT64",
    onnx.TensorProto.INT8: "INT8",
    onnx.TensorProto.INT16: "INT16",
    onnx.TensorProto.INT32: "INT32",
    onnx.TensorProto.INT64: "INT64",
    onnx.TensorProto.FLOAT16: "FP16",
    onnx.TensorProto.FLOAT: "FP32",
    onnx.TensorProto.DOUBLE: "FP64",
    onnx.TensorProto.BFLOAT16: "BF16",
    onnx.TensorProto.STRING: "STRING",
}


class NotServable(Exception):
    """The file cannot be served; the message says why and how to mend it."""


@dataclass(frozen=True, slots=True)
class OnnxFacts:
    signature: Signature
    weights_bytes: int
    parameter_count: int
    largest_tensor_bytes: int
    custom_domains: tuple[str, ...]


def read(path: Path) -> OnnxFacts:
    """Raises NotServable for what is no ONNX model, or one that this file alone does not make."""
    size = path.stat().st_size
    if size > LARGEST_BYTES:
        raise NotServable(
            "An ONNX file cannot be larger than 2 GiB. Quantise the model, or split it."
        )
    model = _parse(path)
    _refuse_external_data(model)
    inputs, outputs = _inputs(model.graph), _outputs(model.graph)
    max_batch_size = detect_max_batch_size(inputs, outputs)
    weights_bytes, parameter_count = _weights(model.graph)
    facts = {
        "opset": {item.domain or "ai.onnx": item.version for item in model.opset_import},
        "ir_version": model.ir_version,
        "producer": " ".join(filter(None, [model.producer_name, model.producer_version])),
        "parameter_count": parameter_count,
    }
    return OnnxFacts(
        signature=Signature(inputs, outputs, max_batch_size, facts),
        weights_bytes=weights_bytes,
        parameter_count=parameter_count,
        largest_tensor_bytes=_largest_tensor_bytes(
            model, is_small=size <= _INFER_UP_TO_BYTES, is_batched=max_batch_size > 0
        ),
        custom_domains=tuple(sorted(_domains(model) - STANDARD_DOMAINS)),
    )


def _parse(path: Path) -> Any:
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, ValueError) as error:
        raise NotServable(
            "This is no ONNX model: it cannot be parsed. Export it again, for example with "
            "torch.onnx.export(model, example, 'model.onnx')."
        ) from error
    if not model.ir_version or not model.graph.node or not model.opset_import:
        raise NotServable(
            "This is no ONNX model: it has no graph. Export it again, for example with "
            "torch.onnx.export(model, example, 'model.onnx')."
        )
    if not model.graph.output:
        raise NotServable("The model's graph has no output, so nothing could be served.")
    return model


def _refuse_external_data(model: Any) -> None:
    elsewhere = {
        entry.value
        for tensor in _all_tensors(model.graph)
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    if elsewhere:
        names = ", ".join(sorted(elsewhere)[:3])
        raise NotServable(
            f"The weights are in other files ({names}). Save the model as one file: "
            "onnx.save_model(onnx.load('model.onnx'), 'single.onnx', save_as_external_data=False)."
        )


def _all_tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from _attribute_tensors(attribute)


def _attribute_tensors(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    for graph in _subgraphs(attribute):
        yield from _all_tensors(graph)


def _subgraphs(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def _inputs(graph: Any) -> tuple[Tensor, ...]:
    """Old exporters list initializers among the inputs; those are not asked of the caller."""
    constants = {tensor.name for tensor in graph.initializer}
    return tuple(_tensor(value) for value in graph.input if value.name not in constants)


def _outputs(graph: Any) -> tuple[Tensor, ...]:
    return tuple(_tensor(value) for value in graph.output)


def _tensor(value: Any) -> Tensor:
    if not value.type.HasField("tensor_type"):
        raise NotServable(
            f"{value.name!r} is a {value.type.WhichOneof('value') or 'value without a type'}, and "
            "Triton serves tensors only. With skl2onnx pass options={id(model): {'zipmap': False}}."
        )
    tensor_type = value.type.tensor_type
    dtype = _DTYPES.get(tensor_type.elem_type)
    if dtype is None:
        raise NotServable(
            f"{value.name!r} has an element type that Triton does not serve "
            f"({onnx.TensorProto.DataType.Name(tensor_type.elem_type)}); cast it in the model."
        )
    if not tensor_type.HasField("shape"):
        raise NotServable(
            f"{value.name!r} declares no shape, so its rank is not known. Run "
            "onnx.shape_inference.infer_shapes on the model and export it again."
        )
    dims = tensor_type.shape.dim
    return Tensor(
        name=value.name,
        dtype=dtype,
        dims=tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in dims),
        symbols=tuple(dim.dim_param for dim in dims),
    )


def _weights(graph: Any) -> tuple[int, int]:
    """Bytes and number of all stored constants, those of branches included."""
    total_bytes = total_count = 0
    for tensor in _all_tensors(graph):
        count = _product(tensor.dims)
        total_count += count
        total_bytes += count * _element_bytes(tensor.data_type)
    return total_bytes, total_count


def _element_bytes(data_type: int) -> int:
    try:
        return int(onnx.helper.tensor_dtype_to_np_dtype(data_type).itemsize)
    except KeyError:
        return 4


def _product(dims: Iterable[int]) -> int:
    count = 1
    for dim in dims:
        count *= max(dim, 1)
    return count


def _largest_tensor_bytes(model: Any, *, is_small: bool, is_batched: bool) -> int:
    """For one item. Where shapes cannot be inferred only what the file declares counts."""
    graph = model.graph
    if is_small:
        try:
            graph = onnx.shape_inference.infer_shapes(model).graph
        except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
            graph = model.graph
    sizes = [_value_bytes(value, is_batched=is_batched) for value in graph.value_info]
    return max(sizes, default=0)


def _value_bytes(value: Any, *, is_batched: bool) -> int:
    tensor_type = value.type.tensor_type
    dims = [dim.dim_value for dim in tensor_type.shape.dim]
    starts_free = is_batched and dims and dims[0] == 0
    return _product(dims[1:] if starts_free else dims) * _element_bytes(tensor_type.elem_type)


def _domains(model: Any) -> set[str]:
    own = {function.domain for function in model.functions}
    return set(_node_domains(model.graph.node)) - own


def _node_domains(nodes: Iterable[Any]) -> Iterator[str]:
    for node in nodes:
        yield node.domain
        for attribute in node.attribute:
            for graph in _subgraphs(attribute):
                yield from _node_domains(graph.node)
