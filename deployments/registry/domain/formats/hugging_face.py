"""A folder of Hugging Face with safetensors, which vLLM, SGLang and TensorRT-LLM serve.

Its files lie at the root of the serving repository, as the servers expect a folder of a hub.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from deployments.registry.domain.artifacts import files
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats.format import (
    ArtifactReading,
    Context,
    Format,
    Inspection,
)
from deployments.registry.domain.hugging_face import facts as model_facts
from deployments.registry.domain.hugging_face.facts import LanguageModelFacts
from deployments.registry.domain.signatures import PARAMETER_COUNT, Backend, Signature
from deployments.sizing.domain import declared_size, language_models
from deployments.spec.domain.engines import OPENAI_ENGINES

CONFIG: Final = "config.json"
WEIGHTS: Final = ".safetensors"
_TASK: Final = "deployments.registry.domain.hugging_face.reading:read"
_RANK: Final = re.compile(r"rank\d+\.safetensors")


def folder_of_config(artifact: Artifact) -> str | None:
    """Return the top folder, with "/", if it has config.json beside files of weights."""
    top = files.common_folder(artifact.sizes)
    prefix = f"{top}/" if top else ""
    return prefix if f"{prefix}{CONFIG}" in artifact.sizes else None


def _detect(artifact: Artifact) -> str | None:
    prefix = folder_of_config(artifact)
    if prefix is None:
        return None
    names = [path.removeprefix(prefix) for path in artifact.sizes]
    has_weights = any(
        name.endswith(WEIGHTS) and "/" not in name and not _RANK.fullmatch(name) for name in names
    )
    return f"{prefix}{CONFIG}" if has_weights else None


def _conclude(data: Mapping[str, Any], context: Context) -> Inspection:
    model = model_facts.from_json(data)
    size = declared_size.from_facts(model.to_stored())
    estimate = language_models.estimate_vram(size)
    signature = Signature(
        inputs=(),
        outputs=(),
        facts={
            model_facts.KEY: model.to_stored(),
            PARAMETER_COUNT: model.parameters,
            "largest_inputs": language_models.DEFAULT_LOAD,
        },
        # No Triton serves it: the engines are those of the format.
        backend=Backend(name="", model_file=""),
    )
    folder = PurePosixPath(context.main).parent
    layout = {str(PurePosixPath(path).relative_to(folder)): path for path in model.served}
    return Inspection(signature, estimate, _describe(model), layout)


def _describe(model: LanguageModelFacts) -> dict[str, str]:
    dtype = model.quantization or model.dtype or "mixed precision"
    limit = (
        f"up to {model.context_length:,} tokens" if model.context_length else "context not stated"
    )
    left_out = ""
    if model.unused:
        names = ", ".join(PurePosixPath(path).name for path in model.unused[:3])
        left_out = f" Not served: {names}{' and more' if len(model.unused) > 3 else ''}."
    code = " Code in the folder is not run." if model.needs_code else ""
    if model.needs_code and not model.is_class_known:
        code += (
            " The class of its configuration is such code, and Transformers has none of that type: engines do not "
            "start with it. Convert the folder to a type of Transformers, where there is one."
        )
    chat = "with" if model.has_chat_template else "without"
    need = language_models.describe_need(declared_size.from_facts(model.to_stored()))
    return {
        "Inputs and outputs": f"text in, text out ({chat} a chat template), {limit}",
        "Runtime": f"{model.architecture}, {model.parameters:,} parameters in {model.tensors:,} tensors, "
        f"{dtype}, read from their headers; not loaded here.{left_out}{code}",
        "Batching": f"continuous; {_describe_cache(model)}",
        "GPU memory": need,
    }


def _describe_cache(model: LanguageModelFacts) -> str:
    if not model.cached_layers:
        return (
            "KV cache not known, because config.json does not state it: declare it as "
            f"{declared_size.KV_CACHE} in the metadata"
        )
    vectors = f"{model.cached_vectors} x {model.cached_layers} layers x {model.kv_heads} KV heads x {model.head_size}"
    return f"a token of a request caches {vectors} numbers"


HUGGING_FACE: Final = Format(
    key="hugging_face",
    name="Hugging Face (safetensors)",
    detect=_detect,
    engines=OPENAI_ENGINES,
    reading=ArtifactReading(_TASK, _conclude),
)
