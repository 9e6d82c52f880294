"""Read `config.json` of a language model: its size, its context, and what its KV cache holds.

Names and defaults as vLLM reads them (vllm-project/vllm, vllm/transformers_utils/model_arch_config_convertor.py):
the language part of a multi-modal model is `text_config`; `n_*` are those of GPT-2; the key-value heads are all
heads unless stated; DeepSeek's multi-head latent attention caches one compressed vector for each token and layer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.not_servable import NotServable, printable, quoted

MAX_BYTES: Final = 4 * 2**20
_NESTED: Final = ("text_config", "llm_config", "language_config")
_LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS: Final = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KV_HEADS: Final = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num")
_HIDDEN: Final = ("hidden_size", "n_embd", "d_model")
_CONTEXTS: Final = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
# Of the class that Transformers loads: the others embed or classify.
_GENERATES: Final = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
_MAX_VALUE: Final = 2**31
# Numbers that a token caches; the largest models have some two million.
_MAX_CACHED: Final = 2**27


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """`cached_vectors` of `head_size` for each KV head, layer and token: a key and a value, or one
    compressed vector. `context_length` 0 means not stated.
    """

    architecture: str
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    cached_vectors: int
    context_length: int
    vocabulary: int
    dtype: str
    quantization: str
    quantized_bits: int
    needs_code: bool


def read(artifact: Artifact, path: str) -> ModelConfig:
    """Raises NotServable."""
    data = read_object(artifact, path)
    architecture = _architecture(data, path)
    parts = [data[key] for key in _NESTED if isinstance(data.get(key), dict)]
    text: Mapping[str, Any] = parts[0] if parts else {}
    merged = {**data, **text}
    layers, heads = (_number(merged, names, path) for names in (_LAYERS, _HEADS))
    quantization = merged.get("quantization_config")
    quantized = quantization if isinstance(quantization, dict) else {}
    kv_heads, head_size, vectors = _cache(merged, heads, path)
    if layers * kv_heads * head_size * vectors > _MAX_CACHED:
        raise NotServable(
            f"{path} states {layers:,} layers with {kv_heads:,} KV heads of {head_size:,}, more than any "
            "model has. Upload the config.json that was saved with the weights."
        )
    return ModelConfig(
        architecture=architecture,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        cached_vectors=vectors,
        context_length=_context(merged, path),
        vocabulary=_number(merged, ("vocab_size",), path, default=0),
        dtype=_text(merged.get("dtype") or merged.get("torch_dtype")).removeprefix("torch."),
        quantization=_text(quantized.get("quant_method")),
        quantized_bits=_number(quantized, ("bits",), path, default=0),
        needs_code=isinstance(data.get("auto_map"), dict),
    )


def read_object(artifact: Artifact, path: str) -> dict[str, Any]:
    """A small JSON object. Raises NotServable."""
    size = artifact.sizes[path]
    if size > MAX_BYTES:
        raise NotServable(f"{path} has {size:,} bytes; the limit is {MAX_BYTES:,}.")
    try:
        data = json.loads(artifact.read(path, 0, size))
    except (ValueError, RecursionError) as error:
        raise NotServable(
            f"{path} is not JSON. Save the model again with save_pretrained."
        ) from error
    if not isinstance(data, dict):
        raise NotServable(
            f"{path} is not a JSON object. Save the model again with save_pretrained."
        )
    return data


def _architecture(data: Mapping[str, Any], path: str) -> str:
    names = data.get("architectures")
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        raise NotServable(
            f"{path} names no architecture. Save the model with save_pretrained of its own class, "
            "for example AutoModelForCausalLM."
        )
    if not names[0].endswith(_GENERATES):
        raise NotServable(
            f"{quoted(names[0])} does not generate text, so vLLM and SGLang are not for it. Export it to "
            "ONNX: optimum-cli export onnx --model . exported, and upload the exported folder."
        )
    return printable(names[0])[:100]


def _cache(data: Mapping[str, Any], heads: int, path: str) -> tuple[int, int, int]:
    """KV heads, the size of a vector, and how many vectors each head caches."""
    latent = _number(data, ("kv_lora_rank",), path, default=0)
    if latent:
        return 1, latent + _number(data, ("qk_rope_head_dim",), path, default=0), 1
    hidden = _number(data, _HIDDEN, path, default=0)
    size = _number(data, ("head_dim",), path, default=0) or hidden // heads
    if not size:
        raise NotServable(
            f"{path} states no {_HIDDEN[0]}, so the memory of its KV cache is unknown. Save the model "
            "again with save_pretrained."
        )
    is_single = data.get("multi_query") is True and not data.get("new_decoder_architecture")
    kv_heads = 1 if is_single else _number(data, _KV_HEADS, path, default=0) or heads
    return kv_heads, size, 2


def _context(data: Mapping[str, Any], path: str) -> int:
    """The smallest stated length; YaRN and its kind extend it by a factor."""
    stated = [_number(data, (name,), path, default=0) for name in _CONTEXTS]
    length = min((value for value in stated if value), default=0)
    scaling = data.get("rope_scaling") or data.get("rope_parameters")
    if not isinstance(scaling, dict) or scaling.get("rope_type", scaling.get("type")) != "yarn":
        return length
    factor, original = scaling.get("factor"), scaling.get("original_max_position_embeddings")
    if type(original) is int and isinstance(factor, int | float) and 1 <= factor <= 1000:
        return max(length, min(int(original * factor), _MAX_VALUE - 1))
    return length


def _number(
    data: Mapping[str, Any], names: Iterable[str], path: str, *, default: int | None = None
) -> int:
    for name in names:
        value = data.get(name)
        if value is None:
            continue
        if isinstance(value, list) and value and all(type(item) is int for item in value):
            # One for each layer.
            value = max(value)
        if type(value) is int and 0 <= value < _MAX_VALUE and (value or default is not None):
            return value
        raise NotServable(f"{path}: {name} is {quoted(str(value))}, not a positive number.")
    if default is not None:
        return default
    first = next(iter(names))
    raise NotServable(
        f"{path} states no {first}. Upload the config.json that was saved with the weights."
    )


def _text(value: Any) -> str:
    return printable(value)[:40] if isinstance(value, str) else ""
