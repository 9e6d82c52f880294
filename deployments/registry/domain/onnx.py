"""Read an ONNX file without running it: signature, opset, parameters, custom operators.

Only the protobuf is parsed; no operator is executed and no other file is opened: of external data the sizes
of the files are compared. A hostile file can
still block the parser forever, so this runs in deployments/registry/gateways/sandbox.py only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import onnx
from google.protobuf.message import DecodeError

from deployments.registry.domain import onnx_external_data, onnx_graphs, onnx_refusals
from deployments.registry.domain.formats.onnx import MAX_BYTES
from deployments.registry.domain.not_servable import NotServable, printable, quote
from deployments.registry.domain.onnx_facts import OnnxFacts
from deployments.registry.domain.signatures import Signature, Tensor, detect_max_batch_size
from deployments.sizing.domain import activations

# Operator domains of Triton's ONNX Runtime backend.
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


def read(path: Path, files: Mapping[str, int] | None = None) -> OnnxFacts:
    """Read a model. `files` are the sizes in bytes of the files beside it. Raises NotServable if it is not a
    complete ONNX model.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise NotServable(
            "An ONNX file cannot be larger than 2 GiB. Save its weights as external data: "
            "onnx.save_model(model, 'model.onnx', save_as_external_data=True), and upload the folder."
        )
    model = _parse(path)
    beside = dict(files or {})
    external = onnx_external_data.locate(model, beside)
    onnx_refusals.refuse_call_explosion(model)
    onnx_refusals.refuse_zip_maps(model.graph)
    inputs, outputs = _inputs(model.graph), _outputs(model.graph)
    onnx_refusals.refuse_unusable_tensors(inputs, outputs)
    max_batch_size = detect_max_batch_size(inputs, outputs)
    weights_bytes, parameter_count = _weights(model)
    facts = {
        "opset": {_text(o.domain) or "ai.onnx": o.version for o in model.opset_import[:50]},
        "ir_version": model.ir_version,
        "producer": " ".join(
            filter(None, map(_text, (model.producer_name, model.producer_version)))
        ),
        "parameter_count": parameter_count,
    }
    return OnnxFacts(
        signature=Signature(inputs, outputs, max_batch_size, facts),
        weights_bytes=weights_bytes,
        parameter_count=parameter_count,
        custom_domains=tuple(sorted({_text(domain) for domain in _custom_domains(model)}))[:20],
        external_files=external,
        external_bytes=onnx_external_data.total_bytes(external, beside),
    )


def read_facts(argument: dict[str, Any]) -> dict[str, Any]:
    """Read OnnxFacts as JSON in the sandbox. The argument is {"path", "files"}."""
    return read(Path(argument["path"]), argument["files"]).to_json()


def _parse(path: Path) -> Any:
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, ValueError) as error:
        raise NotServable(
            "Not a valid ONNX model: the file cannot be parsed. Export it again, for example "
            "with torch.onnx.export(model, example, 'model.onnx')."
        ) from error
    if not model.ir_version or not model.graph.node or not model.opset_import:
        raise NotServable(
            "Not a valid ONNX model: the file has no graph. Export it again, for example with "
            "torch.onnx.export(model, example, 'model.onnx')."
        )
    if not model.graph.output:
        raise NotServable(
            "The model's graph has no outputs. Export a model with at least one output."
        )
    return model


def _inputs(graph: Any) -> tuple[Tensor, ...]:
    """Return graph inputs without initializers, which old exporters list as inputs as well."""
    constants = {tensor.name for tensor in graph.initializer}
    return tuple(_tensor(value) for value in graph.input if value.name not in constants)


def _outputs(graph: Any) -> tuple[Tensor, ...]:
    return tuple(_tensor(value) for value in graph.output)


def _tensor(value: Any) -> Tensor:
    if isinstance(value.name, bytes):
        raise NotServable(
            f"A tensor name is not valid UTF-8 ({quote(value.name)}). Rename it and export again."
        )
    if not value.type.HasField("tensor_type"):
        raise NotServable(
            f"{quote(value.name)} is a "
            f"{value.type.WhichOneof('value') or 'value without a type'}, but Triton serves "
            "tensors only. Change the model so that each input and output is one tensor."
        )
    tensor_type = value.type.tensor_type
    dtype = _DTYPES.get(tensor_type.elem_type)
    if dtype is None:
        raise NotServable(
            f"{quote(value.name)} has an element type that Triton does not serve "
            f"({_name_of_type(tensor_type.elem_type)}); cast it in the model."
        )
    if not tensor_type.HasField("shape"):
        raise NotServable(
            f"{quote(value.name)} declares no shape, so its rank is unknown. Run "
            "onnx.shape_inference.infer_shapes on the model and export it again."
        )
    dims = tensor_type.shape.dim
    return Tensor(
        name=value.name,
        dtype=dtype,
        dims=tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in dims),
        symbols=tuple(dim.dim_param for dim in dims),
    )


def _name_of_type(number: int) -> str:
    known = onnx.TensorProto.DataType
    return str(known.Name(number)) if number in known.values() else f"number {number}"


def _weights(model: Any) -> tuple[int, int]:
    """Return the bytes and number of all constants, including those of branches and functions."""
    total_bytes = total_count = 0
    for tensor in onnx_graphs.tensors(model):
        count = _product(tensor.dims)
        total_count += count
        total_bytes += count * activations.element_bytes(tensor.data_type)
    return total_bytes, total_count


def _product(dims: Iterable[int]) -> int:
    count = 1
    for dim in dims:
        count *= max(dim, 1)
    return count


def _custom_domains(model: Any) -> set[str]:
    """Return the domains of operators that neither the standard nor a function of the model defines."""
    own = {(function.domain, function.name) for function in model.functions}
    return {
        node.domain
        for node in onnx_graphs.nodes(model)
        if node.domain not in STANDARD_DOMAINS and (node.domain, node.op_type) not in own
    }


def _text(text: str | bytes) -> str:
    return printable(text)[:200]
