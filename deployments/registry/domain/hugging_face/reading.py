"""The task of the sandbox that reads a folder of Hugging Face: its configuration and the headers of its weights."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Final

from deployments.registry.domain.artifacts import lfs_pointers
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.hugging_face import config as configs
from deployments.registry.domain.hugging_face import quantization, safetensors, weights
from deployments.registry.domain.hugging_face.config import ModelConfig
from deployments.registry.domain.hugging_face.facts import LanguageModelFacts, precision_of
from deployments.registry.domain.hugging_face.safetensors import Tensors
from deployments.registry.domain.hugging_face.weights import WeightFiles
from deployments.registry.domain.not_servable import NotServable, quote

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
    """Read a folder in the sandbox: `main`, the path of config.json, to LanguageModelFacts as JSON. Raises
    NotServable.
    """
    folder = str(PurePosixPath(argument["main"]).parent)
    prefix = "" if folder == "." else f"{folder}/"
    names = {path.removeprefix(prefix): path for path in artifact.sizes if path.startswith(prefix)}
    config = configs.read(artifact, argument["main"])
    if not any(name in names or name.endswith(".tiktoken") for name in _TOKENIZERS):
        raise NotServable(
            "The folder has no tokenizer (tokenizer.json, tokenizer.model or vocab.json). Add it: "
            "AutoTokenizer.from_pretrained(model).save_pretrained(folder)."
        )
    chosen = weights.choose(artifact, names)
    tensors = Tensors(placed={name: names[file] for name, file in chosen.placed.items()})
    _refuse_pointers(artifact, names, chosen)
    for name in chosen.files:
        safetensors.read_header(artifact, names[name], tensors)
    missing = sorted(name for name in chosen.placed if name not in tensors.rows)
    if missing:
        raise NotServable(
            f"{chosen.index} and the files differ: the index has {quote(missing[0])} in "
            f"{quote(chosen.placed[missing[0]])}, and no file has it. Save the model again with "
            "save_pretrained."
        )
    if not tensors.rows:
        raise NotServable("The files hold no tensors. Save the model again with save_pretrained.")
    return _facts(config, tensors, artifact, names, chosen).to_json()


def _refuse_pointers(artifact: Artifact, names: dict[str, str], chosen: WeightFiles) -> None:
    for name, path in names.items():
        if _is_served(name, chosen) and lfs_pointers.is_pointer(artifact, path):
            raise NotServable(f"{path} is {lfs_pointers.NAME}. {lfs_pointers.ADVICE}")


def _facts(
    config: ModelConfig,
    tensors: Tensors,
    artifact: Artifact,
    names: dict[str, str],
    chosen: WeightFiles,
) -> LanguageModelFacts:
    served = [name for name in names if _is_served(name, chosen)]
    sizes = tensors.bytes_by_dtype()
    shape = config.attention
    return LanguageModelFacts(
        architecture=config.architecture,
        engines=config.engines,
        layers=shape.layers,
        cached_layers=shape.cached_layers,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_size=shape.head_size,
        cached_vectors=shape.cached_vectors,
        context_length=config.context_length,
        vocabulary=config.vocabulary,
        dtype=precision_of(config, sizes),
        quantization=config.quantization.method,
        parameters=quantization.count_parameters(tensors, config.quantization),
        tensors=len(tensors.rows),
        weights_bytes=sum(sizes.values()),
        loaded_bytes=sum(size // _WIDE.get(dtype, 1) for dtype, size in sizes.items()),
        needs_code=config.needs_code,
        is_class_known=config.is_class_known,
        has_chat_template=_has_chat_template(artifact, names),
        served=tuple(sorted(names[name] for name in served)),
        unused=tuple(sorted(set(artifact.sizes) - {names[name] for name in served})),
    )


def _is_served(name: str, chosen: WeightFiles) -> bool:
    """Return whether the file is data that is served beside config.json. Code and pickles are not copied, so no
    server can load them.
    """
    return name in chosen.files or ("/" not in name and name.endswith(_SERVED))


def _has_chat_template(artifact: Artifact, names: dict[str, str]) -> bool:
    if f"{_CHAT_TEMPLATE}.jinja" in names or f"{_CHAT_TEMPLATE}.json" in names:
        return True
    path = names.get("tokenizer_config.json")
    return path is not None and bool(configs.read_object(artifact, path).get(_CHAT_TEMPLATE))
