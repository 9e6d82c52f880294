"""The architectures that engines serve, and what the class of a configuration assumes.

`known_models.json` is generated from the wheels of vLLM, SGLang and Transformers by
tests/deployments/registry/model_registries.py.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from deployments.spec.domain.engines import (
    KSERVE_SGLANG,
    KSERVE_TENSORRT_LLM,
    KSERVE_VLLM,
    LLM_SERVICE,
    OPENAI_ENGINES,
)

_TABLE: Final = Path(__file__).with_name("known_models.json")
HYBRID: Final = "hybrid"
ATTENTION_FREE: Final = "attention_free"
_VLLM_ENGINES: Final = (KSERVE_VLLM, LLM_SERVICE)


@dataclass(frozen=True, slots=True)
class ConfigClass:
    """A class of configurations. `text` is the path of the language part, of the type `text_type` by default.
    `defaults` hold for what config.json leaves out; `names` maps a canonical name to the one that the class
    stores it by.
    """

    text: tuple[str, ...] = ()
    text_type: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, int] = field(default_factory=dict)


@functools.cache
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(_TABLE.read_bytes())
    return table


def sources() -> Mapping[str, str]:
    """Return the releases that the table was generated from, by package."""
    stated: Mapping[str, str] = _table()["sources"]
    return stated


def engines_of(architecture: str) -> tuple[str, ...]:
    """Return the engines whose registry has the architecture. Empty if none has.

    TensorRT-LLM publishes no registry, so it counts for every architecture that another engine serves.
    """
    names = _table()["architectures"]
    is_in_vllm = architecture in names["vllm"] or architecture in names["vllm_by_transformers"]
    served = {
        **dict.fromkeys(_VLLM_ENGINES, is_in_vllm),
        KSERVE_SGLANG: architecture in names["sglang"],
    }
    is_served = any(served.values()) or architecture in names["tensorrt_llm"]
    served[KSERVE_TENSORRT_LLM] = is_served
    return tuple(engine for engine in OPENAI_ENGINES if served[engine])


def is_of_other_task(architecture: str) -> bool:
    """Whether vLLM has it to embed, classify, score or draft, and not to generate."""
    return architecture in _table()["not_generative"]


def kind_of(architecture: str) -> str:
    """Return HYBRID or ATTENTION_FREE if some or all layers have no KV cache; otherwise empty."""
    return str(_table()["kinds"].get(architecture, ""))


def has_latent_attention(model_type: str) -> bool:
    """Whether vLLM caches one compressed vector for the type of a model."""
    return model_type in _table()["latent_attention"]


def type_of(architecture: str) -> str:
    """Return the type of a model whose config.json states none. Empty if unknown."""
    return str(_table()["types_of_architectures"].get(architecture, ""))


def config_class(model_type: str) -> ConfigClass | None:
    row = _table()["types"].get(model_type)
    return None if row is None else ConfigClass(**{**row, "text": tuple(row.get("text", ()))})
