"""Folders of TensorRT-LLM: a checkpoint (rank0.safetensors) or an engine (rank0.engine) beside config.json.

They are named as what they are and refused: an engine runs on the kind and number of GPUs and with the release of
TensorRT-LLM that it was built for, a checkpoint has to be built first. The engine kserve-tensorrt-llm reads the folder
that both come from (ADR 34; NVIDIA/TensorRT-LLM, docs: "TensorRT-LLM checkpoint").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats import hugging_face
from deployments.registry.domain.formats.format import Format, head_of

_ADVICE: Final = (
    "Upload the Hugging Face folder that it was converted from (config.json, tokenizer and safetensors): "
    "TensorRT-LLM, vLLM and SGLang serve it without a build."
)


def _ranks(ending: str, key: bytes) -> Callable[[Artifact], str | None]:
    """Return a detector of folders with rank0, rank1 … beside a config.json that has the key among its first
    bytes.
    """
    name = re.compile(rf"rank\d+\.{ending}")

    def detect(artifact: Artifact) -> str | None:
        prefix = hugging_face.folder_of_config(artifact)
        if prefix is None:
            return None
        files = [path.removeprefix(prefix) for path in artifact.sizes]
        if not any(name.fullmatch(file) for file in files):
            return None
        path = f"{prefix}{hugging_face.CONFIG}"
        head = head_of(artifact, path)
        return path if not head or key in head else None

    return detect


ENGINE: Final = Format(
    key="tensorrt_llm_engine",
    name="an engine of TensorRT-LLM",
    detect=_ranks("engine", b'"pretrained_config"'),
    advice=_ADVICE,
)
CHECKPOINT: Final = Format(
    key="tensorrt_llm_checkpoint",
    name="a checkpoint of TensorRT-LLM",
    detect=_ranks("safetensors", b'"architecture"'),
    advice=_ADVICE,
)
