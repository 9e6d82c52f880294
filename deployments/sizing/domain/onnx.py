"""How much GPU memory a version needs: an estimate from the file, until a GPU has measured it.

    VRAM = weights + activations x largest batch + runtime

- weights: bytes of all initializers in the file; ONNX Runtime keeps them on the GPU once.
- activations: 2 x the largest tensor between two nodes for one item (the tensor being read and
  the one being written are alive together), and at least the inputs and outputs themselves.
  A dimension of unknown size counts as 1, so long free dimensions make this too small.
- runtime: 450 MiB for the CUDA context, cuDNN/cuBLAS workspaces and the arena.

The sum is rounded up to 16 MiB. Instances multiply it; that is decided at deployment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIB: Final = 2**20
RUNTIME_MIB: Final = 450
ROUNDED_TO_MIB: Final = 16


@dataclass(frozen=True, slots=True)
class VramEstimate:
    weights_mib: int
    activations_mib: int
    runtime_mib: int

    @property
    def total_mib(self) -> int:
        whole = self.weights_mib + self.activations_mib + self.runtime_mib
        return -(-whole // ROUNDED_TO_MIB) * ROUNDED_TO_MIB


def estimate_vram(
    *,
    weights_bytes: int,
    largest_tensor_bytes: int,
    io_bytes: int,
    max_batch_size: int,
) -> VramEstimate:
    """The last two are for one item. See the module for the formula and its limits."""
    per_item = max(2 * largest_tensor_bytes, io_bytes)
    activations = per_item * max(max_batch_size, 1)
    return VramEstimate(
        weights_mib=-(-weights_bytes // MIB),
        activations_mib=-(-activations // MIB),
        runtime_mib=RUNTIME_MIB,
    )
