"""Estimate the GPU memory of trees, until it is measured on a GPU.

    VRAM = nodes + rows + runtime

- nodes: 16 bytes each, the largest node of cuML's forest inference with 32-bit floats (a value, a
  feature with its flags and the distance to the next node, padded).
- rows: inputs and outputs of the largest batch as 32-bit floats, twice, because the backend copies
  what arrives in the memory of the host.
- runtime: that of `onnx.py`, for the CUDA context and the pool of the backend.
"""

from __future__ import annotations

from typing import Final

from deployments.sizing.domain.onnx import MIB, VramEstimate

_BYTES_OF_NODE: Final = 16
_BYTES_OF_VALUE: Final = 4
_COPIES: Final = 2


def estimate_vram(*, nodes: int, values_per_row: int, rows: int) -> VramEstimate:
    """See the module for the formula."""
    row_bytes = _COPIES * rows * values_per_row * _BYTES_OF_VALUE
    return VramEstimate(
        weights_mib=-(-nodes * _BYTES_OF_NODE // MIB),
        activations_mib=-(-row_bytes // MIB),
        spread_mib=0,
    )
