"""What no ONNX model that is served may contain, whether or not a runtime would load it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import onnx

from deployments.registry.domain import onnx_graphs
from deployments.registry.domain.not_servable import NotServable, quoted
from deployments.registry.domain.signatures import ANY, Tensor

MOST_TENSORS: Final = 50_000
LONGEST_NAME: Final = 1000
# The largest models in use have some ten thousand nodes.
MOST_NODES: Final = 1_000_000
DEEPEST_CALLS: Final = 100
_LARGEST_DIM: Final = 2**31 - 1


def refuse_external_data(model: Any) -> None:
    outside = [tensor for tensor in onnx_graphs.tensors(model) if _is_outside(tensor)]
    if outside:
        named = {e.value for t in outside for e in t.external_data if e.key == "location"}
        names = ", ".join(quoted(name) for name in sorted(named)[:3]) or "not named"
        raise NotServable(
            f"The weights are in other files ({names}). Save the model as one file: "
            "onnx.save_model(onnx.load('model.onnx'), 'single.onnx', save_as_external_data=False)."
        )


def _is_outside(tensor: Any) -> bool:
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data)


def refuse_call_explosion(model: Any) -> None:
    """Runtimes write the body of a function in place of each call: 30 levels of two are a billion."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    sizes: dict[tuple[str, str, str], int] = {}

    def size_of(items: Iterable[Any], depth: int) -> int:
        if depth > DEEPEST_CALLS:
            raise NotServable(
                f"The model's functions call each other more than {DEEPEST_CALLS} levels deep, or "
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

    # Bodies first: one that nobody calls is read by runtimes too.
    total = sum(size_of(onnx_graphs.nodes_of_function(f), 1) for f in model.functions)
    total = max(total, size_of(onnx_graphs.nodes(model), 0))
    if total > MOST_NODES:
        raise NotServable(
            f"Written out, the model's functions have more than {MOST_NODES:,} nodes. Export it "
            "with fewer levels of functions."
        )


def refuse_unusable_tensors(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Names and dims that neither a configuration of Triton nor a request can carry."""
    count = len(inputs) + len(outputs)
    if count > MOST_TENSORS:
        raise NotServable(
            f"The model has {count:,} inputs and outputs; the limit is {MOST_TENSORS:,}. "
            "Combine them into fewer tensors."
        )
    for kind, group in (("input", inputs), ("output", outputs)):
        twice = [name for name, times in Counter(t.name for t in group).items() if times > 1]
        if twice:
            raise NotServable(
                f"The model has more than one {kind} {quoted(twice[0])}. Give each its own name."
            )
        for tensor in group:
            _refuse_name(kind, tensor.name)
            _refuse_dims(kind, tensor)


def _refuse_name(kind: str, name: str) -> None:
    if not name or not name.isprintable() or len(name) > LONGEST_NAME:
        raise NotServable(
            f"An {kind} is named {quoted(name)}: names are 1 to {LONGEST_NAME:,} printable "
            "characters. Rename it and export again."
        )


def _refuse_dims(kind: str, tensor: Tensor) -> None:
    wrong = [dim for dim in tensor.dims if dim != ANY and not 1 <= dim <= _LARGEST_DIM]
    if wrong:
        raise NotServable(
            f"The {kind} {quoted(tensor.name)} has a dimension of {wrong[0]:,}. Dimensions "
            "must be 1 or more, or a name for a dynamic dimension."
        )
