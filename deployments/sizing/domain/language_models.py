"""Estimate the memory of the language model of a serving spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deployments.sizing.domain.memory import LanguageModel, Need, need_of_language_model
from deployments.spec.domain.llm import Llm

# By default, vLLM keeps the cache in the precision of the weights.
_KV_PRECISION: Final[Mapping[str, str]] = {"auto": "bf16", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8"}
# What vLLM makes of the weights while it loads them.
WEIGHT_PRECISION: Final[Mapping[str, str]] = {"fp8": "fp8", "bitsandbytes": "int4"}
_DEFAULTS: Final = LanguageModel(parameters_millions=1)


def estimate_need(llm: Llm, *, precision: str = _DEFAULTS.precision) -> Need | None:
    """None if its size is not declared. `precision` is that of the weights as they are stored."""
    if not llm.parameters_millions:
        return None
    return need_of_language_model(
        LanguageModel(
            parameters_millions=llm.parameters_millions,
            precision=WEIGHT_PRECISION.get(llm.quantization, precision),
            kv_precision=_KV_PRECISION.get(llm.kv_cache_dtype, llm.kv_cache_dtype),
            context_tokens=llm.max_model_len or _DEFAULTS.context_tokens,
            concurrency=llm.max_num_seqs or _DEFAULTS.concurrency,
            memory_percent=round(llm.gpu_memory_utilization * 100),
        )
    )
