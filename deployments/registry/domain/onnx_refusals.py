"""Refuse ONNX models that must not be served, even if a runtime would load them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from deployments.registry.domain import onnx_graphs
from deployments.registry.domain.not_servable import NotServable, quote
from deployments.registry.domain.signatures import ANY, Tensor

MAX_TENSORS: Final = 50_000
MAX_NAME_LENGTH: Final = 1000
# The largest models in use have some ten thousand nodes.
MAX_NODES: Final = 1_000_000
MAX_CALL_DEPTH: Final = 100
_MAX_DIM: Final = 2**31 - 1
_LONGEST_FIX: Final = 600


def refuse_call_explosion(model: Any) -> None:
    """Refuse nested calls that would explode: runtimes inline functions, and 30 levels of two calls each are a
    billion nodes.
    """
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    sizes: dict[tuple[str, str, str], int] = {}

    def size_of(items: Iterable[Any], depth: int) -> int:
        if depth > MAX_CALL_DEPTH:
            raise NotServable(
                f"The model's functions call each other more than {MAX_CALL_DEPTH} levels deep, or "
                "call themselves. Export it without functions: onnx.inliner.inline_local_functions."
            )
        total = 0
        for node in items:
            total += 1
            key = (node.domain, node.op_type, node.overload)
            if key in functions and key not in sizes:
                body = onnx_graphs.nodes_of_function(functions[key])
                sizes[key] = size_of(body, depth + 1)
            total += sizes.get(key, 0)
        return total

    # Function bodies first: runtimes read unused ones too.
    total = sum(size_of(onnx_graphs.nodes_of_function(f), 1) for f in model.functions)
    total = max(total, size_of(onnx_graphs.nodes(model), 0))
    if total > MAX_NODES:
        raise NotServable(
            f"Written out, the model's functions have more than {MAX_NODES:,} nodes. Export it "
            "with fewer levels of functions."
        )


def refuse_zip_maps(graph: Any) -> None:
    """Refuse a map from class to probability for each row, with which converters of classifiers end."""
    tensors = {node.output[0]: node.input[0] for node in graph.node if _is_zip_map(node)}
    maps = [value.name for value in graph.output if value.name in tensors]
    if not maps:
        return
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in constants]
    outputs = [tensors.get(value.name, value.name) for value in graph.output]
    cut = f"onnx.utils.extract_model('model.onnx', 'tensors.onnx', {inputs}, {outputs})"
    if len(cut) > _LONGEST_FIX or not cut.isprintable():
        cut = "onnx.utils.extract_model, with the input of ZipMap in the place of its output"
    raise NotServable(
        f"{quote(maps[0])} is a map for each row (ZipMap), but Triton serves tensors only. Cut it off: "
        f"{cut}. Or convert again without it: zipmap=False of onnxmltools, options={{'zipmap': False}} of skl2onnx."
    )


def _is_zip_map(node: Any) -> bool:
    return bool(node.op_type == "ZipMap" and node.input and node.output)


def refuse_unusable_tensors(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Refuse names and dims that a Triton configuration or a request cannot represent."""
    count = len(inputs) + len(outputs)
    if count > MAX_TENSORS:
        raise NotServable(
            f"The model has {count:,} inputs and outputs; the limit is {MAX_TENSORS:,}. "
            "Combine them into fewer tensors."
        )
    for kind, group in (("input", inputs), ("output", outputs)):
        duplicates = [name for name, times in Counter(t.name for t in group).items() if times > 1]
        if duplicates:
            raise NotServable(
                f"The model has more than one {kind} {quote(duplicates[0])}. Give each its own name."
            )
        for tensor in group:
            _refuse_name(kind, tensor.name)
            _refuse_dims(kind, tensor)


def _refuse_name(kind: str, name: str) -> None:
    if not name or not name.isprintable() or len(name) > MAX_NAME_LENGTH:
        raise NotServable(
            f"An {kind} is named {quote(name)}: names are 1 to {MAX_NAME_LENGTH:,} printable "
            "characters. Rename it and export again."
        )


def _refuse_dims(kind: str, tensor: Tensor) -> None:
    invalid = [dim for dim in tensor.dims if dim != ANY and not 1 <= dim <= _MAX_DIM]
    if invalid:
        raise NotServable(
            f"The {kind} {quote(tensor.name)} has a dimension of {invalid[0]:,}. Dimensions "
            "must be 1 or more, or a name for a dynamic dimension."
        )
