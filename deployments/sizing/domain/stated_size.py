"""What people state of a model that the portal cannot read: how large it is, and in which numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.sizing.domain.memory import BITS

PARAMETERS: Final = "parameters_millions"
DTYPE: Final = "dtype"
CONTEXT: Final = "context_length"
# As libraries write them.
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8",
}
_USUAL_DTYPE: Final = "bf16"


@dataclass(frozen=True, slots=True)
class StatedModel:
    """0 and "" are not stated."""

    parameters_millions: int = 0
    dtype: str = ""
    context_length: int = 0

    @property
    def precision(self) -> str:
        """Of the weights, for sizing."""
        return self.dtype or _USUAL_DTYPE


def of_metadata(metadata: Mapping[str, Any]) -> StatedModel:
    return StatedModel(
        parameters_millions=int(metadata.get(PARAMETERS, 0)),
        dtype=str(metadata.get(DTYPE, "")),
        context_length=int(metadata.get(CONTEXT, 0)),
    )


def of_version(source_uri: str, metadata: Mapping[str, Any]) -> StatedModel:
    """Of a version by reference; of an uploaded one the file tells, and free keys mean nothing."""
    return of_metadata(metadata) if source_uri else StatedModel()


def dtype_named(text: str) -> str:
    """One of those that sizing knows, or empty."""
    name = text.strip().lower()
    name = _OTHER_NAMES.get(name, name)
    return name if name in BITS else ""
