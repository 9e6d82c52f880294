"""Estimate the memory of the language model of a serving spec, or of a version before it has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deployments.sizing.domain.declared_size import DeclaredSize
from deployments.sizing.domain.memory import (
    RUNTIME,
    LanguageModel,
    Need,
    need_of_language_model,
)
from deployments.sizing.domain.onnx import VramEstimate
from deployments.spec.domain.llm import Llm

# By default, a server keeps the cache in the precision of the weights.
_KV_PRECISION: Final[Mapping[str, str]] = {"auto": "bf16", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8"}
# What a server makes of the weights while it loads them.
WEIGHT_PRECISION: Final[Mapping[str, str]] = {"fp8": "fp8", "bitsandbytes": "int4"}
_DEFAULTS: Final = LanguageModel(parameters_millions=1)
DEFAULT_LOAD: Final = f"{_DEFAULTS.context_tokens:,} tokens x {_DEFAULTS.concurrency} requests"


def estimate_need(llm: Llm, size: DeclaredSize) -> Need | None:
    """Estimate the memory that a language model needs with the settings of `llm`. `size` is that of the
    version. None if the number of parameters is unknown.
    """
    parameters = llm.parameters_millions or size.parameters_millions
    if not parameters:
        return None
    is_converted = llm.quantization in WEIGHT_PRECISION
    is_of_version = parameters == size.parameters_millions
    return need_of_language_model(
        LanguageModel(
            parameters_millions=parameters,
            precision=WEIGHT_PRECISION.get(llm.quantization, size.precision),
            kv_precision=_KV_PRECISION.get(llm.kv_cache_dtype, llm.kv_cache_dtype),
            context_tokens=llm.max_model_len or _DEFAULTS.context_tokens,
            concurrency=llm.max_num_seqs or _DEFAULTS.concurrency,
            memory_percent=round((llm.mem_fraction_static or llm.gpu_memory_utilization) * 100),
            data_parallel=llm.data_parallel,
            attention=size.attention if is_of_version else None,
            weights_mib=size.weights_mib if is_of_version and not is_converted else 0,
            kv_kib_per_token=size.kv_kib_per_token if is_of_version else 0,
        )
    )


def model_of(size: DeclaredSize) -> LanguageModel:
    """Return the model at DEFAULT_LOAD, with a context of at most the model's."""
    context = _DEFAULTS.context_tokens
    return LanguageModel(
        parameters_millions=size.parameters_millions,
        precision=size.precision,
        context_tokens=min(context, size.context_length or context),
        attention=size.attention,
        weights_mib=size.weights_mib,
        kv_kib_per_token=size.kv_kib_per_token,
    )


def estimate_vram(size: DeclaredSize) -> VramEstimate:
    """Estimate the memory on one GPU at DEFAULT_LOAD. The lower bound has the KV cache of one request.

    `activations_mib` are KV cache and workspace.
    """
    terms = {term.name: term.mib for term in need_of_language_model(model_of(size)).terms}
    cache = terms["KV cache"]
    return VramEstimate(
        weights_mib=terms["Weights"],
        activations_mib=cache + terms["Workspace"],
        spread_mib=cache - -(-cache // _DEFAULTS.concurrency),
        runtime_mib=terms[RUNTIME],
    )


def describe_need(size: DeclaredSize) -> str:
    """Return the terms of the formula at DEFAULT_LOAD."""
    need = need_of_language_model(model_of(size))
    terms = ", ".join(f"{term.name.lower()} {term.mib:,}" for term in need.terms)
    cache = next(term for term in need.terms if term.name == "KV cache")
    return f"about {need.mib_on(1):,} MiB on one GPU: {terms}. KV cache: {cache.detail}."
