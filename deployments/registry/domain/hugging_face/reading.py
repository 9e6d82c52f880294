"""The task of the sandbox that reads a folder of Hugging Face: its configuration and the headers of its weights.

`model.safetensors.index.json` maps each tensor to its file (huggingface/transformers, utils/hub.py
`get_checkpoint_shard_files`); without it all weights are in one file.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.hugging_face import config as configs
from deployments.registry.domain.hugging_face import safetensors
from deployments.registry.domain.hugging_face.config import ModelConfig
from deployments.registry.domain.hugging_face.facts import LanguageModelFacts, precision_of
from deployments.registry.domain.hugging_face.safetensors import Tensors
from deployments.registry.domain.not_servable import NotServable, quoted

INDEX: Final = "model.safetensors.index.json"
WEIGHTS: Final = ".safetensors"
_MAX_INDEX_BYTES: Final = 64 * 2**20
_MAX_FILES: Final = 1000
# A server reads one of them.
_TOKENIZERS: Final = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "spiece.model",
    "tekken.json",
)
_SERVED: Final = (".json", ".jinja", ".txt", ".model", ".tiktoken")
_CHAT_TEMPLATE: Final = "chat_template"
_WIDE: Final = {"F32": 2, "F64": 4}


def read(argument: dict[str, Any], artifact: Artifact) -> dict[str, Any]:
    """`main`, the path of config.json, to LanguageModelFacts as JSON. Raises NotServable."""
    folder = str(PurePosixPath(argument["main"]).parent)
    prefix = "" if folder == "." else f"{folder}/"
    names = {path.removeprefix(prefix): path for path in artifact.sizes if path.startswith(prefix)}
    config = configs.read(artifact, argument["main"])
    if not any(name in names or name.endswith(".tiktoken") for name in _TOKENIZERS):
        raise NotServable(
            "The folder has no tokenizer (tokenizer.json, tokenizer.model or vocab.json). Add it: "
            "AutoTokenizer.from_pretrained(model).save_pretrained(folder)."
        )
    weights = _weight_files(artifact, names)
    tensors = Tensors()
    for name in weights:
        safetensors.read_header(artifact, names[name], tensors)
    _compare_index(artifact, names, tensors)
    if not tensors.files:
        raise NotServable("The files hold no tensors. Save the model again with save_pretrained.")
    return _facts(config, tensors, artifact, names, weights).to_json()


def _weight_files(artifact: Artifact, names: dict[str, str]) -> list[str]:
    """All weights of the top folder: an index that leaves one out would serve half of a model."""
    weights = sorted(name for name in names if name.endswith(WEIGHTS) and "/" not in name)
    if len(weights) > 1 and INDEX not in names:
        raise NotServable(
            f"{len(weights):,} files of weights have no {INDEX}, which says what is in which. Upload "
            "the whole folder as save_pretrained wrote it."
        )
    if len(weights) > _MAX_FILES:
        raise NotServable(f"{len(weights):,} files of weights are more than {_MAX_FILES:,}.")
    return weights


def _compare_index(artifact: Artifact, names: dict[str, str], tensors: Tensors) -> None:
    if INDEX not in names:
        return
    stated = _weight_map(artifact, names[INDEX])
    files = {name: PurePosixPath(path).name for name, path in tensors.files.items()}
    missing = sorted({file for file in stated.values() if file not in names})
    if missing:
        raise NotServable(
            f"{INDEX} names {quoted(missing[0])}, which is not in the folder. Upload all files of weights."
        )
    differing = sorted(name for name in {*stated, *files} if stated.get(name) != files.get(name))
    if differing:
        name = differing[0]
        raise NotServable(
            f"{INDEX} and the files differ: the index has {quoted(name)} in "
            f"{quoted(stated.get(name, 'no file'))}, the files have it in "
            f"{quoted(files.get(name, 'none'))}. Save the model again with save_pretrained."
        )


def _weight_map(artifact: Artifact, path: str) -> dict[str, str]:
    size = artifact.sizes[path]
    if size > _MAX_INDEX_BYTES:
        raise NotServable(f"{INDEX} has {size:,} bytes; the limit is {_MAX_INDEX_BYTES:,}.")
    try:
        data = json.loads(artifact.read(path, 0, size))
    except (ValueError, RecursionError):
        data = None
    match data:
        case {"weight_map": dict(stated)} if all(isinstance(file, str) for file in stated.values()):
            return stated
    raise NotServable(
        f"{INDEX} has no readable weight_map. Save the model again with save_pretrained."
    )


def _facts(
    config: ModelConfig,
    tensors: Tensors,
    artifact: Artifact,
    names: dict[str, str],
    weights: list[str],
) -> LanguageModelFacts:
    served = [name for name in names if _is_served(name, weights)]
    return LanguageModelFacts(
        architecture=config.architecture,
        layers=config.layers,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_size=config.head_size,
        cached_vectors=config.cached_vectors,
        context_length=config.context_length,
        vocabulary=config.vocabulary,
        dtype=precision_of(config, tensors.bytes),
        quantization=config.quantization,
        parameters=_parameters(config, tensors),
        tensors=len(tensors.files),
        weights_bytes=sum(tensors.bytes.values()),
        loaded_bytes=sum(size // _WIDE.get(dtype, 1) for dtype, size in tensors.bytes.items()),
        needs_code=config.needs_code,
        has_chat_template=_has_chat_template(artifact, names),
        served=tuple(sorted(names[name] for name in served)),
        unused=tuple(sorted(set(artifact.sizes) - {names[name] for name in served})),
    )


def _is_served(name: str, weights: list[str]) -> bool:
    """Data beside config.json. Code and pickles are not copied, so no server can load them."""
    return name in weights or ("/" not in name and name.endswith(_SERVED))


def _parameters(config: ModelConfig, tensors: Tensors) -> int:
    """Packed integers of quantised weights hold several each (AWQ and GPTQ in I32, bitsandbytes in U8)."""
    packed = {}
    if config.quantization and 0 < config.quantized_bits <= 8:
        packed["I32"] = 32 // config.quantized_bits
    if config.quantization == "bitsandbytes":
        packed["U8"] = 2
    return sum(count * packed.get(dtype, 1) for dtype, count in tensors.elements.items())


def _has_chat_template(artifact: Artifact, names: dict[str, str]) -> bool:
    if f"{_CHAT_TEMPLATE}.jinja" in names or f"{_CHAT_TEMPLATE}.json" in names:
        return True
    path = names.get("tokenizer_config.json")
    return path is not None and bool(configs.read_object(artifact, path).get(_CHAT_TEMPLATE))
