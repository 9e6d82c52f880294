"""Check the settings of a language model against what is known of its version."""

from __future__ import annotations

from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.sizing.domain import declared_size
from deployments.spec.domain.accelerators import neuron_rules
from deployments.spec.domain.serving_spec import Llm, ServingSpec
from fleet.gpus.domain import neuron


def check_limits(version: ModelVersion, spec: ServingSpec, llm: Llm) -> list[Check]:
    return [*_check_context(version, llm), *_check_heads(version, spec, llm)]


def _check_context(version: ModelVersion, llm: Llm) -> list[Check]:
    """Check that the context is no longer than the model's, because its server would not start. A declared
    length may be wrong, so the check blocks only where it was read from the files.
    """
    size = declared_size.from_version(version.source_uri, version.metadata, version.signature)
    context_length = size.context_length
    if not context_length or llm.max_model_len <= context_length:
        return []
    detail = (
        f"{llm.max_model_len:,} tokens are requested, but the context length of "
        f"{version.label} is {context_length:,}."
    )
    fix = "Request fewer tokens or correct the metadata of the version."
    if size.is_read:
        fix = f"Use {context_length} tokens or fewer, or 0."
    return [Check("Context", ok=False, detail=detail, fix=fix, is_blocking=size.is_read)]


def _check_heads(version: ModelVersion, spec: ServingSpec, llm: Llm) -> list[Check]:
    """Check that the GPUs divide the attention heads: vLLM, SGLang and TensorRT-LLM give each GPU, or
    NeuronCore, the same number of them, or do not start.
    """
    is_neuron = spec.gpu_resource == neuron.DEVICE
    each = neuron_rules.CORES_EACH if is_neuron else 1
    heads = declared_size.from_version(
        version.source_uri, version.metadata, version.signature
    ).heads
    if not heads or heads % (llm.tensor_parallel * each) == 0:
        return []
    detail = (
        f"{version.label} has {heads} attention heads, which {llm.tensor_parallel * each} "
        f"{'NeuronCores' if is_neuron else 'GPUs'} cannot share evenly."
    )
    options = [str(count) for count in (1, 2, 4, 8, 16) if heads % (count * each) == 0]
    fix = f"Set tensor_parallel to {' or '.join(options)}."
    return [Check("Tensor parallel", ok=False, detail=detail, fix=fix)]
