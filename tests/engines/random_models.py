"""Write small models with random weights as a hub has them: configuration, tokenizer and safetensors.

Their answers mean nothing. The engine reads, loads and computes them as it does large ones.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

CONTEXT_TOKENS: Final = 512
# Heads of 32 are the smallest that vLLM computes on a processor.
_WIDTH, _HEADS, _LAYERS, _HIDDEN = 64, 2, 2, 128
_LORA_RANK = 8
_SPECIAL: Final = ("<unk>", "<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>", "<|tool|>")
_UNKNOWN, _BEGIN, _END = range(3)
_CHAT_TEMPLATE: Final = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{% endfor %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
Shapes = Mapping[str, Sequence[int]]


def write_llama(folder: Path) -> Path:
    """Write a text generator with a chat template."""
    tokens = _write_byte_tokenizer(folder)
    _write_json(
        folder / "config.json",
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": tokens,
            "hidden_size": _WIDTH,
            "intermediate_size": _HIDDEN,
            "num_hidden_layers": _LAYERS,
            "num_attention_heads": _HEADS,
            "num_key_value_heads": _HEADS,
            "max_position_embeddings": CONTEXT_TOKENS,
            "rms_norm_eps": 1e-6,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "bos_token_id": _BEGIN,
            "eos_token_id": _END,
            "torch_dtype": "float32",
        },
    )
    shapes: dict[str, Sequence[int]] = {
        "model.embed_tokens.weight": (tokens, _WIDTH),
        "model.norm.weight": (_WIDTH,),
        "lm_head.weight": (tokens, _WIDTH),
    }
    for layer in range(_LAYERS):
        prefix = f"model.layers.{layer}"
        shapes |= {f"{prefix}.self_attn.{name}_proj.weight": (_WIDTH, _WIDTH) for name in "qkvo"}
        shapes |= {
            f"{prefix}.mlp.gate_proj.weight": (_HIDDEN, _WIDTH),
            f"{prefix}.mlp.up_proj.weight": (_HIDDEN, _WIDTH),
            f"{prefix}.mlp.down_proj.weight": (_WIDTH, _HIDDEN),
            f"{prefix}.input_layernorm.weight": (_WIDTH,),
            f"{prefix}.post_attention_layernorm.weight": (_WIDTH,),
        }
    _write_weights(folder / "model.safetensors", shapes)
    return folder


def write_adapter(folder: Path) -> Path:
    """Write a LoRA adapter of the text generator, in PEFT's layout."""
    folder.mkdir(parents=True)
    _write_json(
        folder / "adapter_config.json",
        {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": "chat",
            "r": _LORA_RANK,
            "lora_alpha": 16,
            "lora_dropout": 0.0,
            "bias": "none",
            "target_modules": ["q_proj", "v_proj"],
        },
    )
    shapes: dict[str, Sequence[int]] = {}
    for layer in range(_LAYERS):
        for name in ("q_proj", "v_proj"):
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            shapes[f"{prefix}.lora_A.weight"] = (_LORA_RANK, _WIDTH)
            shapes[f"{prefix}.lora_B.weight"] = (_WIDTH, _LORA_RANK)
    _write_weights(folder / "adapter_model.safetensors", shapes, scale=1.0)
    return folder


def write_embedder(folder: Path) -> Path:
    """Write a BERT that turns a text into a vector."""
    return _write_bert(folder, "BertModel", prefix="", labels=())


def write_classifier(folder: Path, labels: Sequence[str]) -> Path:
    """Write a BERT with a class for each label; one label makes it a cross-encoder that ranks documents."""
    return _write_bert(folder, "BertForSequenceClassification", prefix="bert.", labels=labels)


def _write_bert(folder: Path, architecture: str, *, prefix: str, labels: Sequence[str]) -> Path:
    tokens = _write_byte_tokenizer(folder, has_pairs=True)
    config: dict[str, Any] = {
        "architectures": [architecture],
        "model_type": "bert",
        "vocab_size": tokens,
        "hidden_size": _WIDTH,
        "intermediate_size": _HIDDEN,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "max_position_embeddings": CONTEXT_TOKENS,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "position_embedding_type": "absolute",
        "pad_token_id": _UNKNOWN,
        "torch_dtype": "float32",
    }
    if labels:
        config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        config["label2id"] = {label: number for number, label in enumerate(labels)}
    _write_json(folder / "config.json", config)
    shapes = {
        f"{prefix}embeddings.word_embeddings.weight": (tokens, _WIDTH),
        f"{prefix}embeddings.position_embeddings.weight": (CONTEXT_TOKENS, _WIDTH),
        f"{prefix}embeddings.token_type_embeddings.weight": (2, _WIDTH),
        **_norm(f"{prefix}embeddings.LayerNorm"),
        **_linear(f"{prefix}pooler.dense", _WIDTH, _WIDTH),
    }
    for number in range(_LAYERS):
        layer = f"{prefix}encoder.layer.{number}"
        for name in ("query", "key", "value"):
            shapes |= _linear(f"{layer}.attention.self.{name}", _WIDTH, _WIDTH)
        shapes |= _linear(f"{layer}.attention.output.dense", _WIDTH, _WIDTH)
        shapes |= _norm(f"{layer}.attention.output.LayerNorm")
        shapes |= _linear(f"{layer}.intermediate.dense", _WIDTH, _HIDDEN)
        shapes |= _linear(f"{layer}.output.dense", _HIDDEN, _WIDTH)
        shapes |= _norm(f"{layer}.output.LayerNorm")
    if labels:
        shapes |= _linear("classifier", _WIDTH, len(labels))
    _write_weights(folder / "model.safetensors", shapes)
    return folder


def _linear(name: str, inputs: int, outputs: int) -> dict[str, Sequence[int]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _norm(name: str) -> dict[str, Sequence[int]]:
    return {f"{name}.weight": (_WIDTH,), f"{name}.bias": (_WIDTH,)}


def _write_byte_tokenizer(folder: Path, *, has_pairs: bool = False) -> int:
    """Write a tokenizer whose tokens are bytes, and return the number of its tokens."""
    folder.mkdir(parents=True)
    vocabulary = [*_SPECIAL, *_byte_characters()]
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": content,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for number, content in enumerate(_SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": False,
        },
        "post_processor": _pairs() if has_pairs else None,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": False,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(vocabulary)},
            "merges": [],
        },
    }
    _write_json(folder / "tokenizer.json", tokenizer)
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": _SPECIAL[_UNKNOWN],
        "bos_token": _SPECIAL[_BEGIN],
        "eos_token": _SPECIAL[_END],
        "pad_token": _SPECIAL[_UNKNOWN],
        "model_max_length": CONTEXT_TOKENS,
    }
    if not has_pairs:
        settings["chat_template"] = _CHAT_TEMPLATE
    _write_json(folder / "tokenizer_config.json", settings)
    return len(vocabulary)


def _pairs() -> dict[str, Any]:
    """Return how two texts become one sequence, with the types 0 and 1 of their tokens."""

    def special(number: int, kind: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": _SPECIAL[number], "type_id": kind}}

    first = [special(_BEGIN, 0), {"Sequence": {"id": "A", "type_id": 0}}, special(_END, 0)]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, special(_END, 1)]
    return {
        "type": "TemplateProcessing",
        "single": first,
        "pair": [*first, *second],
        "special_tokens": {
            _SPECIAL[number]: {
                "id": _SPECIAL[number],
                "ids": [number],
                "tokens": [_SPECIAL[number]],
            }
            for number in (_BEGIN, _END)
        },
    }


def _byte_characters() -> list[str]:
    """Return the character that stands for each byte in a byte-level vocabulary, as GPT-2 defined them."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = {byte: chr(byte) for byte in printable}
    characters |= {byte: chr(256 + number) for number, byte in enumerate(others)}
    return [characters[byte] for byte in range(256)]


def _write_weights(path: Path, shapes: Shapes, *, scale: float = 0.2) -> None:
    """Write random weights in the format of safetensors. Norms are ones: they would end the signal."""
    random = np.random.default_rng(7)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    end = 0
    for name, shape in sorted(shapes.items()):
        values: NDArray[np.float32] = random.standard_normal(shape, np.float32) * np.float32(scale)
        if "norm" in name.lower():
            values = np.full(shape, 0.0 if name.endswith("bias") else 1.0, np.float32)
        parts.append(values.tobytes())
        start, end = end, end + values.nbytes
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1))
