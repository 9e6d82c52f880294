"""Sequence batching against the model's signature: its controls and its state are tensors of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deployments.registry.domain.signatures import Signature, Tensor
from deployments.registry.domain.triton_config import schedulers
from deployments.registry.domain.triton_config.dims import serving_dims
from deployments.registry.domain.triton_config.text import ConfigProblem
from deployments.spec.domain import triton_values
from deployments.spec.domain.triton_scheduling import Sequence

_CONTROLS = "triton.sequence.start_input"
_STATES = "triton.sequence.states"


def problems_with(signature: Signature, sequence: Sequence | None) -> Iterator[ConfigProblem]:
    if sequence is None:
        return
    inputs = {tensor.name: tensor for tensor in signature.inputs}
    outputs = {tensor.name: tensor for tensor in signature.outputs}
    for kind, name in sequence.controls.items():
        if name in inputs:
            yield from _control(kind, inputs[name], is_batched=signature.is_batched)
        else:
            yield ConfigProblem(
                f'The model has no input "{name}" for {kind}.',
                f"Use {', '.join(inputs)}.",
                setting=_CONTROLS,
            )
    states = triton_values.pairs_of(sequence.states)
    for source, target in states.items():
        yield from _state(source, target, inputs, outputs)
    if inputs and not set(inputs) - {*sequence.controls.values(), *states}:
        yield ConfigProblem(
            "All inputs are controls or state, so a request has none.",
            "Leave one for the request.",
            setting="triton.sequence",
        )


def _control(kind: str, tensor: Tensor, *, is_batched: bool) -> Iterator[ConfigProblem]:
    dims = list(serving_dims(tensor, is_batched=is_batched))
    is_id = kind == schedulers.CORRELATION
    allowed = schedulers.CORRELATION_DTYPES if is_id else tuple(schedulers.FALSE_TRUE)
    if tensor.dtype not in allowed:
        yield ConfigProblem(
            f"{tensor.name} is {tensor.dtype}; {kind} needs {' or '.join(allowed)}.",
            "Use another input, or change the model.",
            setting=_CONTROLS,
        )
    elif dims not in ([], [1], [-1]):
        yield ConfigProblem(
            f"{tensor.name} has dims {dims}, and {kind} is one value.",
            "Use an input with dims [1].",
            setting=_CONTROLS,
        )


def _state(
    source: str, target: str, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]
) -> Iterator[ConfigProblem]:
    if source not in inputs or target not in outputs:
        yield ConfigProblem(
            f"The state {source}={target} needs an input {source} and an output {target}.",
            f"Inputs: {', '.join(inputs)}. Outputs: {', '.join(outputs)}.",
            setting=_STATES,
        )
        return
    first, last = inputs[source], outputs[target]
    if (first.dtype, first.dims) != (last.dtype, last.dims):
        yield ConfigProblem(
            f"{source} and {target} differ in dtype or dims, so one cannot be the next of the other.",
            "Use tensors of the same dtype and dims.",
            setting=_STATES,
        )
