"""The declared size of external weights, which the portal cannot read: parameters, dtype, context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.sizing.domain.memory import BITS

PARAMETERS: Final = "parameters_millions"
DTYPE: Final = "dtype"
CONTEXT: Final = "context_length"
# Names used by libraries.
_ALIASES: Final[Mapping[str, str]] = {
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8",
}
_DEFAULT_DTYPE: Final = "bf16"


@dataclass(frozen=True, slots=True)
class DeclaredSize:
    """0 and "" mean not declared."""

    parameters_millions: int = 0
    dtype: str = ""
    context_length: int = 0

    @property
    def precision(self) -> str:
        """Precision of the weights for sizing."""
        return self.dtype or _DEFAULT_DTYPE


def from_metadata(metadata: Mapping[str, Any]) -> DeclaredSize:
    return DeclaredSize(
        parameters_millions=int(metadata.get(PARAMETERS, 0)),
        dtype=str(metadata.get(DTYPE, "")),
        context_length=int(metadata.get(CONTEXT, 0)),
    )


def from_version(source_uri: str, metadata: Mapping[str, Any]) -> DeclaredSize:
    """Empty for an uploaded version: its size is read from the file."""
    return from_metadata(metadata) if source_uri else DeclaredSize()


def normalize_dtype(text: str) -> str:
    """The precision as sizing names it; empty if unknown."""
    name = text.strip().lower()
    name = _ALIASES.get(name, name)
    return name if name in BITS else ""
