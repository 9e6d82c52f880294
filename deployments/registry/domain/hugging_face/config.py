"""Read `config.json` of a language model: its architecture, its context, its precision, and its KV cache."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.hugging_face import (
    attention,
    known_models,
    quantization,
    text_config,
)
from deployments.registry.domain.hugging_face.attention import AttentionShape
from deployments.registry.domain.hugging_face.quantization import Quantization
from deployments.registry.domain.hugging_face.text_config import TextConfig
from deployments.registry.domain.not_servable import NotServable, printable, quote

MAX_BYTES: Final = 4 * 2**20
_CONTEXTS: Final = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
_VOCABULARY: Final = ("vocab_size", "padded_vocab_size")
_MAX_CONTEXT: Final = 2**31 - 1
_MAX_ARCHITECTURES: Final = 20


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The config.json of a model. `engines` serve the architecture. `context_length` 0 means not stated.
    `needs_code`: config.json names code; `is_class_known`: Transformers or vLLM have the class of the
    configuration, so that it is read without that code.
    """

    architecture: str
    engines: tuple[str, ...]
    attention: AttentionShape
    context_length: int
    vocabulary: int
    dtype: str
    quantization: Quantization
    needs_code: bool
    is_class_known: bool


def read(artifact: Artifact, path: str) -> ModelConfig:
    """Read the config.json of a model. Raises NotServable."""
    data = read_object(artifact, path)
    architecture = _architecture(data, path)
    text = text_config.find(data, architecture)
    whole = {**text.values, **data}
    return ModelConfig(
        architecture=printable(architecture)[:100],
        engines=known_models.engines_of(architecture),
        attention=attention.read(text, architecture, path),
        context_length=_context(text, path),
        vocabulary=attention.read_number(text, _VOCABULARY, path),
        dtype=_text(whole.get("dtype") or whole.get("torch_dtype")).removeprefix("torch."),
        quantization=quantization.read(whole, _beside(artifact, path)),
        needs_code=isinstance(data.get("auto_map"), dict),
        is_class_known=text_config.is_class_known(data, architecture),
    )


def read_object(artifact: Artifact, path: str) -> dict[str, Any]:
    """Return a small JSON object. Raises NotServable."""
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


def _beside(artifact: Artifact, path: str) -> Mapping[str, Any]:
    """Return ModelOpt's file, which vLLM reads where config.json states no quantization."""
    beside = path.removesuffix("config.json") + quantization.MODELOPT_FILE
    return read_object(artifact, beside) if beside in artifact.sizes else {}


def _architecture(data: Mapping[str, Any], path: str) -> str:
    """Return the first stated architecture that an engine serves, as engines choose."""
    stated = data.get("architectures")
    names = [name for name in stated if isinstance(name, str)] if isinstance(stated, list) else []
    if not names:
        raise NotServable(
            f"{path} names no architecture. Save the model with save_pretrained of its own class, "
            "for example AutoModelForCausalLM."
        )
    for name in names[:_MAX_ARCHITECTURES]:
        if known_models.engines_of(name):
            return name
    export = (
        "Export it to ONNX: optimum-cli export onnx --model . exported, and upload the exported "
        "folder."
    )
    if known_models.is_of_other_task(names[0]):
        raise NotServable(
            f"{quote(names[0])} does not generate text, so vLLM and SGLang are not for it. {export}"
        )
    releases = known_models.sources()
    raise NotServable(
        f"No engine serves {quote(names[0])}: it is not in the registries of vLLM {releases['vllm']} and "
        f"SGLang {releases['sglang']}, and TensorRT-LLM does not list it. {export}"
    )


def _context(text: TextConfig, path: str) -> int:
    """Return the smallest stated length; YaRN and its kind extend it by a factor."""
    names = [name for name in _CONTEXTS if text.get(name) is not None]
    stated = [attention.read_number(text, (name,), path) for name in names]
    length = min((value for value in stated if value), default=0)
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    if not isinstance(scaling, dict) or scaling.get("rope_type", scaling.get("type")) != "yarn":
        return length
    factor, original = scaling.get("factor"), scaling.get("original_max_position_embeddings")
    if type(original) is int and isinstance(factor, int | float) and 1 <= factor <= 1000:
        return max(length, min(int(original * factor), _MAX_CONTEXT))
    return length


def _text(value: Any) -> str:
    return printable(value)[:40] if isinstance(value, str) else ""
