"""The size of a language model: declared for external weights, read from the files of an upload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.sizing.domain.memory import BITS, MIB, Attention

PARAMETERS: Final = "parameters_millions"
DTYPE: Final = "dtype"
CONTEXT: Final = "context_length"
# KiB that a token of a request caches, at 16 bits.
KV_CACHE: Final = "kv_cache_kib_per_token"
# The facts of an upload in the column `signature`.
FACTS: Final = "language_model"
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
    """The size of a language model. 0, "" and None mean not known. `weights_mib` and `attention` are known from
    files only, the latter unless some layers have a state of another form. `kv_kib_per_token` is declared,
    at 16 bits.
    """

    parameters_millions: int = 0
    dtype: str = ""
    context_length: int = 0
    heads: int = 0
    weights_mib: int = 0
    attention: Attention | None = None
    kv_kib_per_token: int = 0

    @property
    def precision(self) -> str:
        """The precision of the weights for sizing."""
        return self.dtype or _DEFAULT_DTYPE

    @property
    def is_read(self) -> bool:
        """Whether it was read from the files, and not declared."""
        return self.weights_mib > 0


def from_metadata(metadata: Mapping[str, Any]) -> DeclaredSize:
    return DeclaredSize(
        parameters_millions=int(metadata.get(PARAMETERS, 0)),
        dtype=str(metadata.get(DTYPE, "")),
        context_length=int(metadata.get(CONTEXT, 0)),
        kv_kib_per_token=int(metadata.get(KV_CACHE, 0)),
    )


def from_facts(facts: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> DeclaredSize:
    """Read the size of a folder of weights from its facts (registry/domain/hugging_face). A KV cache that the files state
    replaces a declared one.
    """
    # Versions that were read before have no number of their own: all layers cache.
    layers = facts.get("cached_layers", facts["layers"])
    is_known = layers and facts["kv_heads"] and facts["head_size"]
    declared = 0 if is_known else int((metadata or {}).get(KV_CACHE, 0))
    return DeclaredSize(
        parameters_millions=max(1, -(-facts["parameters"] // 1_000_000)),
        dtype=facts["dtype"],
        context_length=facts["context_length"],
        heads=facts["heads"],
        weights_mib=max(1, -(-facts["loaded_bytes"] // MIB)),
        attention=Attention(
            layers=layers,
            kv_heads=facts["kv_heads"],
            head_size=facts["head_size"],
            vectors=facts["cached_vectors"],
        )
        if is_known
        else None,
        kv_kib_per_token=declared,
    )


def from_version(
    source_uri: str, metadata: Mapping[str, Any], signature: Mapping[str, Any]
) -> DeclaredSize:
    """Read the declared size of a version. Empty for an uploaded version that is not a language model."""
    if source_uri:
        return from_metadata(metadata)
    return from_facts(signature[FACTS], metadata) if FACTS in signature else DeclaredSize()


def normalize_dtype(text: str) -> str:
    """Return the precision as sizing names it. Empty if unknown."""
    name = text.strip().lower()
    name = _ALIASES.get(name, name)
    return name if name in BITS else ""
