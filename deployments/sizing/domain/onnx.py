"""Estimate the GPU memory of a version from its file, until it is measured on a GPU.

    VRAM = weights + activations + runtime

- weights: bytes of all initializers in the file; ONNX Runtime keeps one copy on the GPU.
- activations: peak bytes of tensors at the largest declared sizes and batch (see activations.py).
  The lower bound is that peak. The upper bound is twice the peak: ONNX Runtime's arena grows by
  doubling, and convolutions allocate workspaces from it.
- runtime: 450 MiB for the CUDA context, cuDNN/cuBLAS workspaces and the arena.

Sums are rounded up to 16 MiB. The number of instances is decided at deployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MIB: Final = 2**20
RUNTIME_MIB: Final = 450
ROUNDED_TO_MIB: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class VramEstimate:
    """The estimated memory of a model on a GPU. `activations_mib` is the upper bound; the lower bound is
    `spread_mib` less.
    """

    weights_mib: int
    activations_mib: int
    spread_mib: int
    runtime_mib: int = RUNTIME_MIB

    @property
    def total_mib(self) -> int:
        whole = self.weights_mib + self.activations_mib + self.runtime_mib
        return -(-whole // ROUNDED_TO_MIB) * ROUNDED_TO_MIB

    def to_json(self) -> dict[str, int]:
        """Return the key `vram_parts_mib` of the column `signature`."""
        return {
            "weights": self.weights_mib,
            "activations": self.activations_mib,
            "activations_spread": self.spread_mib,
            "runtime": self.runtime_mib,
        }

    @classmethod
    def from_signature(cls, signature: Mapping[str, Any]) -> VramEstimate | None:
        """Read the estimate of a version. None if its file was not read."""
        parts = signature.get("vram_parts_mib")
        if not parts:
            return None
        return cls(
            weights_mib=parts["weights"],
            activations_mib=parts["activations"],
            spread_mib=parts.get("activations_spread", 0),
            runtime_mib=parts["runtime"],
        )


def estimate_vram(*, weights_bytes: int, live_bytes: int) -> VramEstimate:
    """See the module for the formula."""
    return VramEstimate(
        weights_mib=-(-weights_bytes // MIB),
        activations_mib=-(-2 * live_bytes // MIB),
        spread_mib=live_bytes // MIB,
    )
