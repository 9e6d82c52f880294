"""Peak bytes of the tensors between operators, for given input sizes.

Shapes are inferred, nothing is executed. Weights are removed first, so that a large file takes no
longer than a small one. Run in deployments/registry/gateways/sandbox.py only: shape inference on a
hostile file may never end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import onnx

# Smaller constants may be shapes, axes and pads, which inference needs.
_MAX_SHAPE_ELEMENTS: Final = 1024


@dataclass(slots=True)
class _Sizes:
    """The bytes of every value by name. Values that inference misses are guessed from the node's inputs."""

    known: dict[str, int]
    is_complete: bool = True
    guessed: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        return self.known.get(name, self.guessed.get(name, 0))


def measure(argument: Mapping[str, Any]) -> dict[str, Any]:
    """Measure the activations of a model in the sandbox: {"path", "inputs": {name: dims}} to {"live": peak
    bytes, "is_complete"}.
    """
    model = onnx.load(str(Path(argument["path"])), load_external_data=False)
    fed = set(argument["inputs"])
    _set_dims(model.graph, argument["inputs"])
    if model.functions:
        # Inference expands functions, which can take arbitrarily long.
        inferred, is_complete = model.graph, False
    else:
        _drop_weights(model.graph)
        inferred, is_complete = _inferred(model)
    sizes = _Sizes(_bytes_of_values(inferred), is_complete)
    live = _peak_bytes(inferred, sizes, fed)
    return {"live": live, "is_complete": sizes.is_complete}


def _inferred(model: Any) -> tuple[Any, bool]:
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True).graph, True
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        return model.graph, False


def _set_dims(graph: Any, inputs: Mapping[str, list[int]]) -> None:
    """Set the dimensions of inputs. Dynamic dimensions of outputs are cleared, to be inferred."""
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        for dim, size in zip(dims, inputs.get(value.name, ()), strict=False):
            if size > 0:
                dim.dim_value = size
    for value in (*graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value"):
                dim.Clear()
    del graph.value_info[:]


def _drop_weights(graph: Any) -> None:
    """Replace large constants by inputs of their shape, which is all that inference needs."""
    kept = []
    for tensor in graph.initializer:
        count = 1
        for dim in tensor.dims:
            count *= max(dim, 1)
        is_here = tensor.data_location != onnx.TensorProto.EXTERNAL
        if count <= _MAX_SHAPE_ELEMENTS and is_here:
            kept.append(onnx.TensorProto.FromString(tensor.SerializeToString()))
        elif tensor.name not in {value.name for value in graph.input}:
            graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _bytes_of_values(graph: Any) -> dict[str, int]:
    sizes = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor_type = value.type.tensor_type
        dims = [dim.dim_value for dim in tensor_type.shape.dim]
        if tensor_type.HasField("shape") and all(
            dim.HasField("dim_value") for dim in tensor_type.shape.dim
        ):
            sizes[value.name] = _product(dims) * element_bytes(tensor_type.elem_type)
    return sizes


def _peak_bytes(graph: Any, sizes: _Sizes, fed: Iterable[str] = ()) -> int:
    """Return the peak of the bytes alive. Operators run in file order; a value is freed after its last reader,
    except inputs and outputs.

    Weights are not included.
    """
    last_reader = {name: i for i, node in enumerate(graph.node) for name in _reads(node)}
    kept = {*fed, *(value.name for value in graph.output)}
    alive = {name: sizes.of(name) for name in fed}
    current = peak = sum(alive.values())
    for index, node in enumerate(graph.node):
        outputs = () if node.op_type == "Constant" else tuple(filter(None, node.output))
        _guess(node, outputs, sizes)
        alive |= {name: sizes.of(name) for name in outputs}
        current += sum(alive[name] for name in outputs)
        peak = max(peak, current + _peak_inside(node, sizes))
        for name in {*_reads(node), *outputs} - kept:
            if name in alive and last_reader.get(name, -1) <= index:
                current -= alive.pop(name)
    return peak


def _guess(node: Any, outputs: Iterable[str], sizes: _Sizes) -> None:
    """Assume that an unknown value is as large as the node's largest input."""
    for name in outputs:
        if name not in sizes.known:
            sizes.guessed[name] = max((sizes.of(read) for read in node.input), default=0)
            sizes.is_complete = False


def _peak_inside(node: Any, sizes: _Sizes) -> int:
    """Return the maximum over the branches and loop bodies of a node."""
    peak = 0
    for graph in _subgraphs(node):
        inner = _Sizes(sizes.known | _bytes_of_values(graph))
        peak = max(peak, _peak_bytes(graph, inner))
        sizes.is_complete = sizes.is_complete and inner.is_complete
    return peak


def _reads(node: Any) -> set[str]:
    """Return names that a node reads, including those that its branches read from the outer graph."""
    names = {name for name in node.input if name}
    for graph in _subgraphs(node):
        for inner in graph.node:
            names |= _reads(inner)
    return names


def _subgraphs(node: Any) -> Iterable[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _product(dims: Iterable[int]) -> int:
    count = 1
    for dim in dims:
        count *= max(dim, 0)
    return count


def element_bytes(data_type: int) -> int:
    try:
        return int(onnx.helper.tensor_dtype_to_np_dtype(data_type).itemsize)
    except KeyError:
        return 4
