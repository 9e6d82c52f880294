"""The facts that are read from a folder of Hugging Face, and how they are stored with a version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from deployments.registry.domain.hugging_face.config import ModelConfig

# In the column `signature`.
KEY: Final = "language_model"
# The precision as sizing names it, by safetensors' dtype; others are quantised formats.
_PRECISIONS: Final = {
    "F64": "fp32",
    "F32": "fp32",
    "F16": "fp16",
    "BF16": "bf16",
    "F8_E4M3": "fp8",
    "F8_E5M2": "fp8",
    "I8": "int8",
}


@dataclass(frozen=True, slots=True)
class LanguageModelFacts:
    """The facts of a language model. `loaded_bytes` are the weights in the memory of a GPU: numbers with 32 and
    64 bits are loaded with 16.

    `engines` serve the architecture. `cached_layers` have a KV cache; 0 means that its size is not known.
    `served` are the files that a server needs, `unused` the others.
    """

    architecture: str
    engines: tuple[str, ...]
    layers: int
    cached_layers: int
    heads: int
    kv_heads: int
    head_size: int
    cached_vectors: int
    context_length: int
    vocabulary: int
    dtype: str
    quantization: str
    parameters: int
    tensors: int
    weights_bytes: int
    loaded_bytes: int
    needs_code: bool
    is_class_known: bool
    has_chat_template: bool
    served: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def parameters_millions(self) -> int:
        return -(-self.parameters // 1_000_000)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def to_stored(self) -> dict[str, Any]:
        """Return the facts to store, without the lists of files, which the version has as rows."""
        facts = asdict(self)
        return {name: facts[name] for name in facts if name not in ("served", "unused")}


def from_json(data: Mapping[str, Any]) -> LanguageModelFacts:
    lists = {name: tuple(data[name]) for name in ("engines", "served", "unused")}
    return LanguageModelFacts(**{**data, **lists})


def precision_of(config: ModelConfig, bytes_by_dtype: Mapping[str, int]) -> str:
    """Return the precision that most bytes have. Empty for packed formats."""
    if config.quantization.integer_bits == 4:
        return "int4"
    most = max(bytes_by_dtype, key=lambda dtype: bytes_by_dtype[dtype])
    return _PRECISIONS.get(most, "")
