"""The requests of Triton's warm-up, in a ModelConfig."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from deployments.registry.domain.signatures import Signature, Tensor
from deployments.registry.domain.triton_config import schema
from deployments.registry.domain.triton_config.dims import serving_dims
from deployments.registry.domain.triton_config.warm_up_samples import WarmUpSample
from deployments.spec.domain import triton_values
from deployments.spec.domain.triton_settings import TritonSettings, WarmUpRequests

# In the place of a file of a golden request, where the requests are not known yet.
ANY_GOLDEN_REQUEST: Final = "golden"


def add(
    config: Any,
    signature: Signature,
    triton: TritonSettings,
    golden: Sequence[WarmUpSample],
    *,
    managed: Collection[str],
) -> None:
    """Add the warm-up. `managed` are inputs that no request has."""
    inputs = [tensor for tensor in signature.inputs if tensor.name not in managed]
    if golden:
        _add_samples(config, inputs, triton.warm_up, golden)
        return
    shapes = triton_values.pairs_of(triton.warm_up.shapes)
    for size in _sizes(signature, triton.warm_up):
        warm_up = config.model_warmup.add(
            name=f"batch-{size}", batch_size=size, count=triton.warm_up.count
        )
        for tensor in inputs:
            entry = warm_up.inputs[tensor.name]
            entry.data_type = schema.data_type(tensor.dtype)
            dims = serving_dims(tensor, is_batched=signature.is_batched)
            entry.dims.extend(_dims(dims, shapes.get(tensor.name, "")))
            _set_data(entry, triton.warm_up)


def _add_samples(
    config: Any,
    inputs: Iterable[Tensor],
    requests: WarmUpRequests,
    golden: Sequence[WarmUpSample],
) -> None:
    dtypes = {tensor.name: schema.data_type(tensor.dtype) for tensor in inputs}
    for sample in golden:
        warm_up = config.model_warmup.add(
            name=sample.name, batch_size=sample.batch_size, count=requests.count
        )
        for item in sample.inputs:
            entry = warm_up.inputs[item.name]
            entry.data_type = dtypes[item.name]
            entry.dims.extend(item.dims)
            entry.input_data_file = item.file


def _set_data(entry: Any, requests: WarmUpRequests) -> None:
    if requests.data == "random":
        entry.random_data = True
    elif requests.data == "golden":
        entry.input_data_file = ANY_GOLDEN_REQUEST
    else:
        entry.zero_data = True


def _sizes(signature: Signature, requests: WarmUpRequests) -> Iterable[int]:
    """Return the batch sizes of the warm-up. That of a model without batching is 0."""
    return requests.batch_sizes or (1,) if signature.is_batched else (0,)


def _dims(dims: tuple[int, ...], shape: str) -> list[int]:
    """Return the dimensions of a warm-up input. Dynamic ones are 1 where no shape is set."""
    return list(triton_values.dims_of(shape)) if shape else [max(dim, 1) for dim in dims] or [1]
