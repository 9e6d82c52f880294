"""Rules across the fields of a spec, each with its fix. Rules of one field are in its definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deployments.access.domain import catalogue as access_kinds
from deployments.spec.domain import (
    applicability,
    environment_variables,
    scaling_rules,
    triton_rules,
)
from deployments.spec.domain.accelerators import neuron_rules
from deployments.spec.domain.engines import (
    KSERVE_ENGINES,
    KSERVE_SGLANG,
    KSERVE_TENSORRT_LLM,
    KSERVE_VLLM,
    LLM_SERVICE,
    TRITON_VLLM,
    VLLM_ENGINES,
)
from deployments.spec.domain.llm import Llm
from deployments.spec.domain.model_settings import MAX_ADDITIONAL_MODELS
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.scaling import KNATIVE
from fleet.gpus.domain import neuron
from portal.core import definitions
from portal.core.definitions import Rule

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec
    from deployments.spec.domain.triton_settings import TritonSettings

_WHOLE_GPU: Final = "nvidia.com/gpu"
_WHOLE: Final = (_WHOLE_GPU, neuron.DEVICE)


def rules_of(spec: ServingSpec) -> Iterator[Rule]:
    yield from _engine(spec)
    yield from _replicas_and_gpus(spec)
    yield from catalogue.rules_of(spec)
    yield from scaling_rules.rules_of(spec)
    yield from neuron_rules.rules_of(spec)
    yield from _triton(spec)
    yield from _model_cache(spec)
    yield from _additional_models(spec)
    yield from _token_issuer(spec)
    yield from _team_address(spec)
    if spec.llm is not None:
        yield from _llm(spec, spec.llm)
    problem = environment_variables.problem_with(spec.env, spec.engine)
    yield "env", not problem, problem


def _engine(spec: ServingSpec) -> Iterator[Rule]:
    """Yield the rule that fields which the engine does not use keep their default."""
    fields = definitions.deep_fields_of(type(spec))
    for path, fix in applicability.list_unsupported(spec.engine, type(spec)).items():
        yield path, definitions.value_at(spec, path) in (fields[path].default, None), fix


def _replicas_and_gpus(spec: ServingSpec) -> Iterator[Rule]:
    yield (
        "max_replicas",
        spec.min_replicas <= spec.max_replicas,
        f"Use at least min_replicas ({spec.min_replicas}).",
    )
    yield (
        "gpus",
        spec.gpu_resource in _WHOLE or spec.gpus == 1,
        f"Use 1 {spec.gpu_resource} per replica.",
    )


def _token_issuer(spec: ServingSpec) -> Iterator[Rule]:
    is_named, is_needed = bool(spec.network.token_issuer), spec.network.access_kind.takes_issuer
    yield (
        "network.token_issuer",
        is_named or not is_needed,
        "Name the issuer whose tokens callers send.",
    )
    yield (
        "network.token_issuer",
        is_needed or not is_named,
        "Only callers with a token of an identity provider have an issuer. Set network.access "
        f"{' or '.join(access_kinds.names_with_issuer())}, or leave it empty.",
    )


def _team_address(spec: ServingSpec) -> Iterator[Rule]:
    is_there = spec.network.team_address
    yield (
        "network.team_address",
        not is_there or spec.network.access_kind.serves_team_address,
        "The team's address serves callers with a key. Set network.access to keys, or turn it off.",
    )
    yield (
        "network.team_address",
        not is_there or spec.split_nodes == 1,
        "KServe's server over several nodes answers below /openai only. Use one node, or turn it off.",
    )


def _model_cache(spec: ServingSpec) -> Iterator[Rule]:
    cache, claim = spec.storage.model_cache, spec.storage.volume_claim
    yield (
        "storage.model_cache",
        cache != "cluster" or spec.engine in KSERVE_ENGINES,
        "LocalModelCache needs an InferenceService. Use volume, none or a kserve engine.",
    )
    yield (
        "storage.model_cache",
        cache != "volume" or spec.engine != TRITON_VLLM,
        "Triton's vLLM backend downloads the weights itself. Use none, or another engine.",
    )
    yield (
        "storage.model_cache",
        cache != "volume" or spec.llm is None or not spec.llm.artifact,
        "Weights on a claim or in an image are not downloaded. Use none.",
    )
    yield (
        "storage.volume_claim",
        cache != "volume" or bool(claim),
        "Enter the claim that holds the models.",
    )
    yield (
        "storage.volume_claim",
        cache == "volume" or not claim,
        "Only the model cache volume uses a claim. Leave it empty.",
    )


def _triton(spec: ServingSpec) -> Iterator[Rule]:
    yield from triton_rules.rules_of(spec)
    for path, tuning in (("triton", spec.triton), *_of_additional(spec)):
        wrong = [index for index in tuning.instances.gpus if index >= spec.gpus]
        yield (
            f"{path}.instances.gpus",
            not wrong,
            f"A pod has {spec.gpus} GPU{'s' * (spec.gpus > 1)}, from 0. Use indices below {spec.gpus}.",
        )


def _of_additional(spec: ServingSpec) -> Iterator[tuple[str, TritonSettings]]:
    for index, additional in enumerate(spec.additional_models):
        yield f"additional_models.{index}.triton", additional.triton


def _additional_models(spec: ServingSpec) -> Iterator[Rule]:
    if not spec.additional_models:
        return
    models = [model.model for model in spec.additional_models]
    yield (
        "additional_models",
        len(set(models)) == len(models),
        "Triton can't serve two versions under one model name. Add each model once.",
    )
    yield (
        "additional_models",
        len(models) <= MAX_ADDITIONAL_MODELS,
        f"Add at most {MAX_ADDITIONAL_MODELS} more models.",
    )
    yield (
        "additional_models",
        all(model.triton.warm_up.data != "golden" for model in spec.additional_models),
        "Golden requests warm up the deployment's first model only. Use zeros for the others.",
    )
    yield (
        "additional_models",
        spec.scaling.kind != KNATIVE,
        "Knative loads one model per pod. Use another autoscaler.",
    )
    yield (
        "additional_models",
        spec.storage.model_cache != "cluster",
        "KServe caches one model per deployment. Set storage.model_cache to volume or none.",
    )


def _llm(spec: ServingSpec, llm: Llm) -> Iterator[Rule]:
    yield (
        "gpus",
        spec.gpus == llm.gpus_of_pod,
        "tensor_parallel splits the model across GPUs of a pod, data_parallel copies it to further "
        f"ones. Use {llm.gpus_of_pod}.",
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
        not (llm.gated and spec.storage.secret and spec.storage.model_cache == "cluster"),
        "KServe's cache reads one Secret. Add HF_TOKEN to the Secret of storage.secret and turn gated "
        "off, or leave storage.secret empty.",
    )
    yield from _of_server(spec, llm)
    if llm.nodes > 1:
        yield (
            "gpu_resource",
            spec.gpu_resource == _WHOLE_GPU,
            "Multi-node models need whole GPUs. Use nvidia.com/gpu.",
        )
    if spec.split_nodes > 1:
        yield from _split_over_nodes(llm)


def _of_server(spec: ServingSpec, llm: Llm) -> Iterator[Rule]:
    yield (
        "llm.quantization",
        spec.engine != KSERVE_SGLANG or llm.quantization != "bitsandbytes",
        f"SGLang's image does not contain bitsandbytes. Use fp8, or {KSERVE_VLLM}.",
    )
    yield (
        "llm.quantization",
        spec.engine != KSERVE_TENSORRT_LLM or llm.quantization == "auto",
        "TensorRT-LLM runs weights as they are stored. Use auto with weights that are quantised already, or "
        f"{KSERVE_VLLM}.",
    )
    yield (
        "llm.kv_cache_dtype",
        spec.engine != KSERVE_TENSORRT_LLM or llm.kv_cache_dtype != "fp8_e5m2",
        "TensorRT-LLM's 8-bit KV cache is fp8_e4m3. Use it, or fp8.",
    )
    yield (
        "llm.max_num_batched_tokens",
        spec.engine not in VLLM_ENGINES
        or not llm.max_num_batched_tokens
        or llm.max_num_batched_tokens >= llm.max_num_seqs,
        "Each running request needs a token of the step. Use at least max_num_seqs "
        f"({llm.max_num_seqs}).",
    )
    yield (
        "llm.prefix_routing",
        llm.prefix_caching or not llm.prefix_routing,
        "Without prefix caching no pod has a prefix cached. Turn llm.prefix_caching on.",
    )
    yield (
        "llm.max_lora_rank",
        bool(llm.lora_adapters) or llm.max_lora_rank == Llm().max_lora_rank,
        "There are no LoRA adapters. Use 16.",
    )


def _split_over_nodes(llm: Llm) -> Iterator[Rule]:
    yield (
        "llm.data_parallel",
        llm.data_parallel == 1,
        f"{KSERVE_VLLM} splits one copy across the nodes. Use 1, or {LLM_SERVICE}.",
    )
    yield (
        "llm.artifact",
        not llm.hugging_face_id,
        f"{KSERVE_VLLM} supports multi-node only with pvc:// or oci:// weights. Set artifact, or use "
        f"{LLM_SERVICE}.",
    )
