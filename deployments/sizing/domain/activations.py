"""How many bytes of tensors between operators are alive at once, for given sizes of the inputs.

Shapes are inferred, nothing is executed; the stored weights are left out first, so that a large
file is as quick as a small one. For deployments/registry/gateways/sandbox.py only: inference of a hostile file need not
end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import onnx

# Constants up to this many numbers may be shapes, axes and pads, which inference reads.
_MOST_NUMBERS_OF_A_SHAPE: Final = 1024


@dataclass(slots=True)
class _Sizes:
    """Bytes of every value by name. What inference could not tell is guessed from a node's inputs."""

    known: dict[str, int]
    is_complete: bool = True
    guessed: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        return self.known.get(name, self.guessed.get(name, 0))


def measure(argument: Mapping[str, Any]) -> dict[str, Any]:
    """{"path", "inputs": {name: dims}} to {"live": the most bytes at once, "is_complete"}."""
    model = onnx.load(str(Path(argument["path"])), load_external_data=False)
    fed = set(argument["inputs"])
    _set_dims(model.graph, argument["inputs"])
    if model.functions:
        # Inference writes functions out, and takes as long as the file's author likes.
        inferred, is_complete = model.graph, False
    else:
        _drop_weights(model.graph)
        inferred, is_complete = _inferred(model)
    sizes = _Sizes(_bytes_of_values(inferred), is_complete)
    live = _most_alive(inferred, sizes, fed)
    return {"live": live, "is_complete": sizes.is_complete}


def _inferred(model: Any) -> tuple[Any, bool]:
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True).graph, True
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        return model.graph, False


def _set_dims(graph: Any, inputs: Mapping[str, list[int]]) -> None:
    """Free dimensions of outputs keep no name, so that they follow from the inputs."""
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
    """A large constant becomes an input of its shape: inference needs no more of it."""
    kept = []
    for tensor in graph.initializer:
        count = 1
        for dim in tensor.dims:
            count *= max(dim, 1)
        if count <= _MOST_NUMBERS_OF_A_SHAPE:
            kept.append(onnx.TensorProto.FromString(tensor.SerializeToString()))
        elif tensor.name not in {value.name for value in graph.input}:
            graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _bytes_of_values(graph: Any) -> dict[str, int]:
    found = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor_type = value.type.tensor_type
        dims = [dim.dim_value for dim in tensor_type.shape.dim]
        if tensor_type.HasField("shape") and all(
            dim.HasField("dim_value") for dim in tensor_type.shape.dim
        ):
            found[value.name] = _product(dims) * _element_bytes(tensor_type.elem_type)
    return found


def _most_alive(graph: Any, sizes: _Sizes, fed: Iterable[str] = ()) -> int:
    """Operators run in the file's order; a value goes after its last reader, inputs and outputs stay.

    Only what is fed or made counts: weights are counted elsewhere.
    """
    last_reader = {name: i for i, node in enumerate(graph.node) for name in _reads(node)}
    stays = {*fed, *(value.name for value in graph.output)}
    alive = {name: sizes.of(name) for name in fed}
    now = most = sum(alive.values())
    for index, node in enumerate(graph.node):
        made = () if node.op_type == "Constant" else tuple(filter(None, node.output))
        _guess(node, made, sizes)
        alive |= {name: sizes.of(name) for name in made}
        now += sum(alive[name] for name in made)
        most = max(most, now + _most_inside(node, sizes))
        for name in {*_reads(node), *made} - stays:
            if name in alive and last_reader.get(name, -1) <= index:
                now -= alive.pop(name)
    return most


def _guess(node: Any, made: Iterable[str], sizes: _Sizes) -> None:
    """What inference does not tell is taken to be as large as the largest that the node reads."""
    for name in made:
        if name not in sizes.known:
            sizes.guessed[name] = max((sizes.of(one) for one in node.input), default=0)
            sizes.is_complete = False


def _most_inside(node: Any, sizes: _Sizes) -> int:
    """Of the branches and loop bodies of a node, whichever takes most."""
    most = 0
    for graph in _subgraphs(node):
        inner = _Sizes(sizes.known | _bytes_of_values(graph))
        most = max(most, _most_alive(graph, inner))
        sizes.is_complete = sizes.is_complete and inner.is_complete
    return most


def _reads(node: Any) -> set[str]:
    """Values of the outer graph that a branch uses count as read by its node."""
    found = {name for name in node.input if name}
    for graph in _subgraphs(node):
        for inner in graph.node:
            found |= _reads(inner)
    return found


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


def _element_bytes(data_type: int) -> int:
    try:
        return int(onnx.helper.tensor_dtype_to_np_dtype(data_type).itemsize)
    except KeyError:
        return 4
