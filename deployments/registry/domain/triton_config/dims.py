"""Dimensions as Triton states them."""

from __future__ import annotations

from deployments.registry.domain.signatures import Tensor


def serving_dims(tensor: Tensor, *, is_batched: bool) -> tuple[int, ...]:
    """Return the dims in Triton's metadata, without the batch dimension."""
    return tensor.dims[1:] if is_batched else tensor.dims
