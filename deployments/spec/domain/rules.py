"""Rules across the fields of a spec, each with its fix. Rules of one field are in its definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deployments.spec.domain import applicability, environment_variables, scaling_rules
from deployments.spec.domain.engines import (
    KSERVE_ENGINES,
    KSERVE_VLLM,
    TRITON_VLLM,
)
from deployments.spec.domain.llm import Llm
from deployments.spec.domain.model_settings import MAX_PACKED
from deployments.spec.domain.scaling import KNATIVE
from portal.core import definitions
from portal.core.definitions import Rule

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

_WHOLE_GPU: Final = "nvidia.com/gpu"


def rules_of(spec: ServingSpec) -> Iterator[Rule]:
    yield from _engine(spec)
    yield from _replicas_and_gpus(spec)
    yield from scaling_rules.rules_of(spec)
    yield from _kserve(spec)
    yield from _packed(spec)
    if spec.llm is not None:
        yield from _llm(spec, spec.llm)
    problem = environment_variables.problem_with(spec.env, spec.engine)
    yield "env", not problem, problem


def _engine(spec: ServingSpec) -> Iterator[Rule]:
    """Fields that the engine does not use keep their default."""
    fields = definitions.deep_fields_of(type(spec))
    for path, fix in applicability.unsupported_by(spec.engine, type(spec)).items():
        yield path, definitions.value_at(spec, path) in (fields[path].default, None), fix


def _replicas_and_gpus(spec: ServingSpec) -> Iterator[Rule]:
    yield (
        "max_replicas",
        spec.min_replicas <= spec.max_replicas,
        f"Use at least min_replicas ({spec.min_replicas}).",
    )
    yield (
        "gpus",
        spec.gpu_resource == _WHOLE_GPU or spec.gpus == 1,
        f"Use 1 {spec.gpu_resource} per replica.",
    )


def _kserve(spec: ServingSpec) -> Iterator[Rule]:
    yield (
        "storage.model_cache",
        spec.storage.model_cache == "none" or spec.engine in KSERVE_ENGINES,
        "LocalModelCache needs an InferenceService. Use none or a kserve engine.",
    )


def _packed(spec: ServingSpec) -> Iterator[Rule]:
    if not spec.packed:
        return
    models = [packed.model for packed in spec.packed]
    yield (
        "packed",
        len(set(models)) == len(models),
        "Triton can't serve two versions under one model name. Add each model once.",
    )
    yield "packed", len(models) <= MAX_PACKED, f"Add at most {MAX_PACKED} more models."
    yield (
        "packed",
        spec.scaling.kind != KNATIVE,
        "Knative loads one model per pod. Use another autoscaler.",
    )
    yield (
        "packed",
        spec.storage.model_cache == "none",
        "KServe caches one model per deployment. Set storage.model_cache to none.",
    )


def _llm(spec: ServingSpec, llm: Llm) -> Iterator[Rule]:
    yield (
        "gpus",
        spec.gpus == llm.tensor_parallel,
        f"tensor_parallel splits the model across the GPUs of one pod. Use {llm.tensor_parallel}.",
    )
    yield (
        "llm.artifact",
        not (llm.artifact and llm.hugging_face_id),
        "Set either hugging_face_id or artifact.",
    )
    yield (
        "llm.hugging_face_id",
        spec.engine != TRITON_VLLM or bool(llm.hugging_face_id) or not llm.artifact,
        "Triton's vLLM backend loads weights by Hugging Face id. For other weights use "
        f"{KSERVE_VLLM}.",
    )
    yield (
        "llm.gated",
        not (llm.gated and spec.storage.secret and spec.storage.model_cache != "none"),
        "KServe's cache reads one Secret. Add HF_TOKEN to the Secret of storage.secret and turn gated "
        "off, or leave storage.secret empty.",
    )
    yield (
        "llm.max_num_batched_tokens",
        not llm.max_num_batched_tokens or llm.max_num_batched_tokens >= llm.max_num_seqs,
        "Each running request needs a token of the step. Use at least max_num_seqs "
        f"({llm.max_num_seqs}).",
    )
    yield (
        "llm.max_lora_rank",
        bool(llm.lora_adapters) or llm.max_lora_rank == Llm().max_lora_rank,
        "There are no LoRA adapters. Use 16.",
    )
    if llm.nodes > 1:
        yield from _several_nodes(spec, llm)


def _several_nodes(spec: ServingSpec, llm: Llm) -> Iterator[Rule]:
    yield (
        "llm.artifact",
        not llm.hugging_face_id,
        "KServe supports multi-node only with pvc:// or oci:// weights. Set artifact.",
    )
    yield (
        "gpu_resource",
        spec.gpu_resource == _WHOLE_GPU,
        "Multi-node models need whole GPUs. Use nvidia.com/gpu.",
    )
