"""How much GPU memory a version needs: an estimate from the file, until a GPU has measured it.

    VRAM = weights + activations + runtime

- weights: bytes of all initializers in the file; ONNX Runtime keeps them on the GPU once.
- activations: the tensors that are alive at once at the largest declared sizes and batch (see
  activations.py). The least is just that. The most is twice that: ONNX Runtime's arena grows by
  doubling, and convolutions take workspaces from it.
- runtime: 450 MiB for the CUDA context, cuDNN/cuBLAS workspaces and the arena.

Sums are rounded up to 16 MiB. Instances multiply it; that is decided at deployment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIB: Final = 2**20
RUNTIME_MIB: Final = 450
ROUNDED_TO_MIB: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class VramEstimate:
    """`activations_mib` is the most, which plans go by; it may be `spread_mib` less."""

    weights_mib: int
    activations_mib: int
    spread_mib: int
    runtime_mib: int = RUNTIME_MIB

    @property
    def total_mib(self) -> int:
        whole = self.weights_mib + self.activations_mib + self.runtime_mib
        return -(-whole // ROUNDED_TO_MIB) * ROUNDED_TO_MIB


def estimate_vram(*, weights_bytes: int, live_bytes: int) -> VramEstimate:
    """See the module for the formula and its limits."""
    return VramEstimate(
        weights_mib=-(-weights_bytes // MIB),
        activations_mib=-(-2 * live_bytes // MIB),
        spread_mib=live_bytes // MIB,
    )
