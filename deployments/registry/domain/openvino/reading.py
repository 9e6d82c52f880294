"""The task of the sandbox that reads an OpenVINO model: inputs, outputs and the places of its weights.

Facts of the server: triton-inference-server/openvino_backend, src/openvino.cc (`ValidateInputs`) and
src/openvino_utils.cc (types). It finds a tensor by its first name in order of bytes (ov::Output::get_any_name).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact, open_file
from deployments.registry.domain.input_sizes import MAX_DIM
from deployments.registry.domain.not_servable import NotServable, printable, quote
from deployments.registry.domain.openvino import graph as graphs
from deployments.registry.domain.openvino.graph import Graph, Layer, Port

_MAX_XML_BYTES: Final = 200 * 2**20
_MAX_NAME: Final = 200
_OPSET: Final = re.compile(r"opset[1-9][0-9]?")
_VERSIONS: Final = ("10", "11")
_DTYPES: Final = {
    "FP32": "FP32",
    "FP16": "FP16",
    "BOOL": "BOOL",
    "I8": "INT8",
    "I16": "INT16",
    "I32": "INT32",
    "I64": "INT64",
    "U8": "UINT8",
    "U16": "UINT16",
    "U32": "UINT32",
    "U64": "UINT64",
}
# Element types of weights, also compressed ones (openvino, src/core/include/openvino/core/type/element_type.hpp).
_WEIGHT_BITS: Final = {
    **dict.fromkeys(("f64",), 64),
    **dict.fromkeys(("f32",), 32),
    **dict.fromkeys(("f16", "bf16"), 16),
    **dict.fromkeys(("f8e4m3", "f8e5m2", "i8", "u8"), 8),
    **dict.fromkeys(("f4e2m1", "nf4", "i4", "u4"), 4),
}
_SAVE: Final = "Save the model again with openvino.save_model."


def read(argument: Mapping[str, Any], artifact: Artifact) -> dict[str, Any]:
    """Read a model in the sandbox: {"main"}, the path of the XML, to inputs, outputs and sizes. Raises
    NotServable.
    """
    main = str(argument["main"])
    if artifact.sizes[main] > _MAX_XML_BYTES:
        raise NotServable(f"{main} is larger than {_MAX_XML_BYTES // 2**20} MiB.")
    with open_file(artifact, main) as file:
        graph = graphs.read(file)
    if graph.version not in _VERSIONS:
        raise NotServable(
            f"The model has IR version {quote(graph.version)}; OpenVINO reads 10 and 11. {_SAVE}"
        )
    _refuse_extensions(graph)
    weights = _weights(artifact.sizes, main, graph)
    inputs = [_input(layer) for layer in graph.layers.values() if layer.kind == "Parameter"]
    outputs = [
        _output(graph, number) for number, row in graph.layers.items() if row.kind == "Result"
    ]
    for kind, rows in (("inputs", inputs), ("outputs", outputs)):
        names = [row["name"] for row in rows]
        if not rows or len(set(names)) < len(names):
            problem = "names two alike" if rows else "has none"
            raise NotServable(f"The model needs {kind} with a name each, and {problem}. {_SAVE}")
    return {
        "inputs": inputs,
        "outputs": outputs,
        "layers": len(graph.layers),
        "weights": weights,
        "parameters": _parameters(graph),
    }


def _refuse_extensions(graph: Graph) -> None:
    own = sorted(opset for opset in graph.opsets if not _OPSET.fullmatch(opset))
    if own:
        raise NotServable(
            f"Layers of {quote(own[0])} need a library of their own (CPU_EXTENSION_PATH), which Triton "
            "would load into the server. Use operations of OpenVINO's opsets."
        )


def _weights(sizes: Mapping[str, int], main: str, graph: Graph) -> int:
    """Return the bytes of the file of weights, within which all constants must lie."""
    path = f"{main.removesuffix('.xml')}.bin"
    end = max((offset + size for offset, size in graph.weights), default=0)
    if any(offset < 0 or size < 0 for offset, size in graph.weights):
        raise NotServable(f"A constant has a negative offset or size. {_SAVE}")
    if not graph.weights:
        return sizes.get(path, 0)
    if path not in sizes:
        raise NotServable(
            f"{path}, the weights of {main}, is missing. Upload both files as a folder."
        )
    if end > sizes[path]:
        raise NotServable(
            f"{path} is cut off: it has {sizes[path]:,} bytes, and a constant ends at byte {end:,}. {_SAVE}"
        )
    return sizes[path]


def _parameters(graph: Graph) -> int:
    """Count the elements of the constants of numbers, each place of the file once. Wide integers are shapes and
    indices.
    """
    return sum(
        size * 8 // _WEIGHT_BITS[kind]
        for (_, size), kind in graph.weights.items()
        if kind in _WEIGHT_BITS
    )


def _input(layer: Layer) -> dict[str, Any]:
    port = next(iter(layer.outputs.values()), Port())
    row = _tensor("input", layer, port, (*port.names, *layer.names))
    if not row["dims"]:
        raise NotServable(
            f"{quote(row['name'])} is a scalar, which Triton's OpenVINO backend does not take. Give it a "
            "dimension."
        )
    return row


def _output(graph: Graph, number: str) -> dict[str, Any]:
    """Describe an output. A result has the name of the tensor that feeds it, or one of its own."""
    layer = graph.layers[number]
    port_id, port = next(iter(layer.inputs.items()), ("0", Port()))
    feeder, feeding_port = graph.edges.get((number, port_id), ("", ""))
    source = graph.layers.get(feeder)
    fed = source.outputs.get(feeding_port, Port()) if source is not None else Port()
    return _tensor(
        "output",
        layer,
        Port(port.precision or fed.precision, (), port.dims),
        (*fed.names, *layer.names),
    )


def _tensor(kind: str, layer: Layer, port: Port, names: tuple[str, ...]) -> dict[str, Any]:
    name = min(names, key=str.encode, default="")
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        raise NotServable(
            f"The {kind} {quote(layer.name)} has no name that requests can use. Name it: "
            f"model.{kind}(0).set_names({{'{kind}'}}), and save the model again."
        )
    dtype = _DTYPES.get(port.precision.upper())
    if dtype is None:
        raise NotServable(
            f"{quote(name)} has the type {quote(port.precision)}, which Triton's OpenVINO backend does "
            "not serve. Convert it in the model."
        )
    return {"name": name, "dtype": dtype, "dims": [_dim(name, text) for text in port.dims]}


def _dim(name: str, text: str) -> int:
    if re.fullmatch(r"-1|[1-9][0-9]{0,8}", text) and int(text) <= MAX_DIM:
        return int(text)
    raise NotServable(
        f"{quote(name)} has the dimension {quote(printable(text))}. Use 1 to {MAX_DIM:,}, or -1."
    )
