"""What an engine cannot use is refused at its field, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deployments.spec.domain import model_names, scaling_rules
from deployments.spec.domain.engines import (
    KSERVE_ENGINES,
    KSERVE_TRITON,
    KSERVE_VLLM,
    LLM_ENGINES,
    LLM_SERVICE,
    ONNX_ENGINES,
    TRITON_VLLM,
)
from deployments.spec.domain.parts import KNATIVE, MOST_PACKED, Batching, Components, Llm
from fleet.clusters.domain import images

if TYPE_CHECKING:
    from deployments.spec.domain.rules import Rule
    from deployments.spec.domain.serving_spec import ServingSpec


def rules_of(spec: ServingSpec) -> Iterator[Rule]:
    yield from scaling_rules.rules_of(spec)
    yield from _tuning(spec)
    yield from _storage(spec)
    yield from _components(spec)
    yield from _packing(spec)
    if spec.llm is not None:
        yield from _llm(spec, spec.llm)


def _tuning(spec: ServingSpec) -> Iterator[Rule]:
    is_llm = spec.engine in LLM_ENGINES
    yield (
        "batching",
        not is_llm or spec.batching == Batching(),
        "vLLM uses continuous batching. Remove the batching settings.",
    )
    yield (
        "instances_per_gpu",
        not is_llm or spec.instances_per_gpu == 1,
        "vLLM uses the whole GPU share for one instance. Use 1.",
    )
    yield (
        "warm_up",
        not is_llm or not spec.warm_up,
        "vLLM warms up on its own. Turn warm-up off.",
    )
    yield (
        "summary_latencies",
        spec.engine in (*ONNX_ENGINES, TRITON_VLLM) or not spec.summary_latencies,
        f"Only Triton reports them, and {spec.engine} does not use Triton. Turn it off.",
    )
    yield (
        "llm",
        is_llm == (spec.llm is not None),
        f"{spec.engine} does not serve language models. Remove llm.",
    )


def _storage(spec: ServingSpec) -> Iterator[Rule]:
    cache = spec.storage.model_cache
    if cache == "cluster":
        yield (
            "storage.model_cache",
            spec.engine in KSERVE_ENGINES,
            "LocalModelCache needs an InferenceService. Use none or a kserve engine.",
        )


def _components(spec: ServingSpec) -> Iterator[Rule]:
    for name in ("transformer_image", "explainer_image"):
        image = getattr(spec.components, name)
        yield (
            f"components.{name}",
            not image or images.parse(image) is not None,
            "Enter an image as registry/name:tag.",
        )
    if spec.components != Components():
        yield (
            "components",
            spec.engine in KSERVE_ENGINES and spec.scaling.kind != KNATIVE,
            f"Transformers and explainers need KServe in Standard mode. Use {KSERVE_TRITON} or "
            f"{KSERVE_VLLM} without knative.",
        )


def _packing(spec: ServingSpec) -> Iterator[Rule]:
    for index, one in enumerate(spec.packed):
        problem = model_names.model_name_problem(one.model)
        yield f"packed.{index}.model", not problem, problem
        yield f"packed.{index}.version", one.version >= 1, "Enter a version number of 1 or more."
    if not spec.packed:
        return
    models = [one.model for one in spec.packed]
    yield (
        "packed",
        len(set(models)) == len(models),
        "Triton can't serve two versions under one model name. Add each model once.",
    )
    yield "packed", len(models) <= MOST_PACKED, f"Add at most {MOST_PACKED} more models."
    yield (
        "packed",
        spec.engine in ONNX_ENGINES,
        f"vLLM uses the whole GPU share for one model. Use {' or '.join(ONNX_ENGINES)}.",
    )
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
        (
            "tensor_parallel splits the model across the GPUs of one pod. Use "
            f"{llm.tensor_parallel}."
        ),
    )
    yield (
        "llm.artifact",
        not (llm.artifact and llm.hugging_face_id),
        "Set either hugging_face_id or artifact.",
    )
    if spec.engine == TRITON_VLLM:
        yield (
            "llm.hugging_face_id",
            bool(llm.hugging_face_id) or not llm.artifact,
            "Triton's vLLM backend loads weights by Hugging Face id. For other weights use "
            f"{KSERVE_VLLM}.",
        )
        yield "llm.nodes", llm.nodes == 1, f"Triton runs on one node. Use {LLM_SERVICE}."
    if spec.engine == KSERVE_VLLM and llm.nodes > 1:
        yield (
            "llm.artifact",
            not llm.hugging_face_id,
            "KServe supports multi-node only with pvc:// or oci:// weights. Set artifact or "
            f"use {LLM_SERVICE}.",
        )
    if llm.nodes > 1:
        yield (
            "gpu_resource",
            spec.gpu_resource == "nvidia.com/gpu",
            "Multi-node models need whole GPUs. Use nvidia.com/gpu.",
        )
