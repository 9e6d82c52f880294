"""The KV cache of a language model: how many layers have one, and what they cache for each token.

Names and order as vLLM reads them (vllm-project/vllm, vllm/transformers_utils/model_arch_config_convertor.py, and
`get_num_layers_by_block_type` in vllm/config/model.py): the key-value heads are all heads unless stated, and DeepSeek's
multi-head latent attention caches one compressed vector for each token and layer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from deployments.registry.domain.hugging_face import known_models
from deployments.registry.domain.hugging_face.text_config import TextConfig
from deployments.registry.domain.not_servable import NotServable, quote

_KV_HEADS: Final = (
    "n_head_kv",
    "num_kv_heads",
    "num_key_value_heads",
    "multi_query_group_num",
    "num_attention_groups",
)
_LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS: Final = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_HIDDEN: Final = ("hidden_size", "n_embd", "d_model")
_LAYER_TYPES: Final = ("layers_block_type", "layer_types")
_ATTENTION_TYPES: Final = frozenset(
    {"attention", "full_attention", "sliding_attention", "chunked_attention"}
)
_LISTED_LAYERS: Final = ("attn_layer_indices", "full_attn_idxs")
_MAX_VALUE: Final = 2**31
# Numbers that a token caches; the largest models have some two million.
_MAX_CACHED: Final = 2**27


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """The sizes of a model's attention and KV cache: `cached_vectors` of `head_size` for each KV head, cached
    layer and token are a key and a value, or one compressed vector. 0 means not known.
    """

    layers: int
    cached_layers: int
    heads: int
    kv_heads: int
    head_size: int
    cached_vectors: int


def read(text: TextConfig, architecture: str, path: str) -> AttentionShape:
    """Read the sizes of the attention. Raises NotServable for values that no model has."""
    layers, heads = (read_number(text, names, path) for names in (_LAYERS, _HEADS))
    kv_heads, head_size, vectors = _cache(text, heads, path)
    cached_layers = _cached_layers(text, architecture, layers, path)
    if layers * kv_heads * head_size * vectors > _MAX_CACHED:
        raise NotServable(
            f"{path} states {layers:,} layers with {kv_heads:,} KV heads of {head_size:,}, more than any "
            "model has. Upload the config.json that was saved with the weights."
        )
    is_known = cached_layers and kv_heads and head_size
    return AttentionShape(
        layers=layers,
        cached_layers=cached_layers if is_known else 0,
        heads=heads,
        kv_heads=kv_heads if is_known else 0,
        head_size=head_size if is_known else 0,
        cached_vectors=vectors if is_known else 0,
    )


def read_number(text: TextConfig, names: Iterable[str], path: str) -> int:
    """Return the first stated number of the names. 0 if none is stated. Raises NotServable for another value."""
    for name in names:
        value = text.get(name)
        if value is None:
            continue
        if isinstance(value, list) and value and all(type(item) is int for item in value):
            # One for each layer.
            value = max(value)
        if type(value) is int and 0 <= value < _MAX_VALUE:
            return value
        raise NotServable(f"{path}: {name} is {quote(str(value))}, not a positive number.")
    return 0


def _cache(text: TextConfig, heads: int, path: str) -> tuple[int, int, int]:
    """Return the KV heads, the size of a vector, and how many vectors each head caches."""
    latent = read_number(text, ("kv_lora_rank",), path)
    is_unknown_type = known_models.config_class(text.model_type) is None
    if latent and (is_unknown_type or known_models.has_latent_attention(text.model_type)):
        return 1, latent + read_number(text, ("qk_rope_head_dim",), path), 1
    hidden = read_number(text, _HIDDEN, path)
    size = read_number(text, ("head_dim", "hidden_size_per_head"), path)
    size = size or (hidden // heads if heads else 0)
    is_single = text.get("multi_query") is True and not text.get("new_decoder_architecture")
    if is_single:
        return 1, size, 2
    stated = read_number(text, _KV_HEADS, path)
    # Each block has its own number of heads, or no attention.
    is_by_block = isinstance(text.get("block_configs"), list)
    return stated or (0 if is_by_block else heads), size, 2


def _cached_layers(text: TextConfig, architecture: str, layers: int, path: str) -> int:
    """Return the number of layers with attention. 0 if unknown, or none has it."""
    kind = known_models.kind_of(architecture)
    if kind == known_models.ATTENTION_FREE:
        return 0
    if kind != known_models.HYBRID:
        return layers
    listed = _listed_layers(text)
    if listed is not None:
        return min(layers, listed)
    if every := read_number(text, ("full_attention_interval",), path):
        return layers // every
    period = read_number(text, ("attn_layer_period",), path)
    offset = read_number(text, ("attn_layer_offset",), path)
    return len(range(offset, layers, period)) if period else 0


def _listed_layers(text: TextConfig) -> int | None:
    """Return the number of layers with attention, where each layer is named. None if they are not listed."""
    for name in _LAYER_TYPES:
        if isinstance(types := text.get(name), list) and types:
            return sum(_is_attention(kind) for kind in types)
    for name in _LISTED_LAYERS:
        if isinstance(listed := text.get(name), list) and listed:
            return len(listed)
    pattern = text.get("hybrid_override_pattern")
    return pattern.count("*") if isinstance(pattern, str) else None


def _is_attention(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _ATTENTION_TYPES
