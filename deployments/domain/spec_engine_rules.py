"""What an engine cannot use is refused at its field, with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from deployments.domain import model_names
from deployments.domain.spec_engines import (
    KSERVE_ENGINES,
    KSERVE_TRITON,
    KSERVE_VLLM,
    LLM_ENGINES,
    LLM_SERVICE,
    ONNX_ENGINES,
    TRITON_VLLM,
)
from deployments.domain.spec_parts import (
    FIXED,
    KEDA,
    KNATIVE,
    MOST_PACKED,
    USUAL_TARGETS,
    Batching,
    Components,
    Llm,
    OfficeHours,
    Scaling,
)

if TYPE_CHECKING:
    from deployments.domain.spec_rules import Rule
    from deployments.domain.specs import ServingSpec

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_DAYS = re.compile(r"[0-7](-[0-7])?(,[0-7](-[0-7])?)*|\*")
_SQS = re.compile(
    r"https://sqs\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?/[0-9]{12}/[-\w]{1,80}(\.fifo)?"
)
_IMAGE = re.compile(r"[a-z0-9][-a-z0-9._/:]{0,200}(@sha256:[0-9a-f]{64})?", re.IGNORECASE)


def rules_of(spec: ServingSpec) -> Iterator[Rule]:
    yield from _scaling(spec)
    yield from _tuning(spec)
    yield from _storage(spec)
    yield from _components(spec)
    yield from _packing(spec)
    if spec.llm is not None:
        yield from _llm(spec, spec.llm)


def _scaling(spec: ServingSpec) -> Iterator[Rule]:
    scaling = spec.scaling
    kind = scaling.kind
    metrics = [metric for one, metric in USUAL_TARGETS if one == kind]
    if kind == FIXED:
        yield (
            "max_replicas",
            spec.min_replicas == spec.max_replicas,
            "Without autoscaling set max_replicas equal to min_replicas, or choose scaling.kind "
            "hpa, keda or knative.",
        )
    yield (
        "scaling.metric",
        scaling.metric in metrics or (not scaling.metric and kind in (FIXED, KEDA)),
        f"{kind} scales by {' or '.join(metrics) or 'nothing: leave it empty'}.",
    )
    most = 100 if scaling.metric in ("cpu", "memory") else 100_000
    is_right = 1 <= scaling.target <= most if scaling.metric else scaling.target == 0
    yield "scaling.target", is_right, f"Use 1 to {most}; leave it out without a metric."
    yield (
        "scaling.can_scale_to_zero",
        not scaling.can_scale_to_zero or kind in (KEDA, KNATIVE),
        "Only keda and knative can start the first replica again; choose one of them.",
    )
    yield (
        "scaling.cooldown_seconds",
        0 <= scaling.cooldown_seconds <= 86_400,
        "Use 0 to 86400 seconds.",
    )
    yield from _scaling_of_engine(spec)
    yield from _triggers(scaling, spec.max_replicas)


def _scaling_of_engine(spec: ServingSpec) -> Iterator[Rule]:
    kind = spec.scaling.kind
    if kind == KNATIVE:
        yield (
            "scaling.kind",
            spec.engine in KSERVE_ENGINES,
            f"{spec.engine} has no Knative Service to scale: choose keda, or a kserve engine.",
        )
    if spec.engine == LLM_SERVICE:
        yield (
            "scaling.kind",
            kind == FIXED,
            "LLMInferenceService owns its replicas: use fixed, or kserve-vllm to scale.",
        )
    if spec.llm is not None and spec.llm.nodes > 1:
        yield (
            "scaling.kind",
            kind == FIXED,
            "A model over several nodes does not scale by itself: use fixed.",
        )


def _triggers(scaling: Scaling, most: int) -> Iterator[Rule]:
    is_keda = scaling.kind == KEDA
    hours, queue = scaling.office_hours, scaling.sqs_queue_url
    only_keda = "Only keda watches it: set scaling.kind to keda, or leave it out."
    yield "scaling.office_hours", is_keda or hours is None, only_keda
    yield "scaling.sqs_queue_url", is_keda or not queue, only_keda
    if queue:
        yield (
            "scaling.sqs_queue_url",
            bool(_SQS.fullmatch(queue)),
            "Use the queue's URL: https://sqs.us-east-1.amazonaws.com/111122223333/jobs.",
        )
    if scaling.metric == "sqs":
        yield "scaling.sqs_queue_url", bool(queue), "Name the queue that sqs counts."
    if is_keda:
        yield (
            "scaling.metric",
            bool(scaling.metric or hours),
            "keda needs something to watch: queue, latency, gateway-latency, sqs or office_hours.",
        )
    if hours is not None:
        yield from _office_hours(hours, most)


def _office_hours(hours: OfficeHours, most: int) -> Iterator[Rule]:
    path = "scaling.office_hours"
    clock = "Use hh:mm, for example 07:00."
    yield f"{path}.start", bool(_CLOCK.fullmatch(hours.start)), clock
    yield f"{path}.end", bool(_CLOCK.fullmatch(hours.end)) and hours.end != hours.start, clock
    yield f"{path}.days", bool(_DAYS.fullmatch(hours.days)), "Use 1-5, or 0-6, or *."
    yield (
        f"{path}.timezone",
        _is_timezone(hours.timezone),
        "Use an IANA name, for example Europe/Berlin.",
    )
    yield f"{path}.replicas", 1 <= hours.replicas <= most, f"Use 1 to max_replicas ({most})."


@cache
def _is_timezone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _tuning(spec: ServingSpec) -> Iterator[Rule]:
    is_llm = spec.engine in LLM_ENGINES
    yield (
        "batching",
        not is_llm or spec.batching == Batching(),
        "vLLM batches continuously by itself: leave batching out.",
    )
    yield (
        "instances_per_gpu",
        not is_llm or spec.instances_per_gpu == 1,
        "vLLM takes the whole share for one instance: leave it at 1.",
    )
    yield (
        "warm_up",
        not is_llm or not spec.warm_up,
        "vLLM warms itself up before it is ready: leave it off.",
    )
    yield (
        "llm",
        is_llm == (spec.llm is not None),
        f"{spec.engine} serves no language model: leave llm out.",
    )


def _storage(spec: ServingSpec) -> Iterator[Rule]:
    cache = spec.storage.model_cache
    if cache == "cluster":
        yield (
            "storage.model_cache",
            spec.engine in KSERVE_ENGINES,
            "LocalModelCache belongs to KServe's InferenceService: use none, or a kserve engine.",
        )


def _components(spec: ServingSpec) -> Iterator[Rule]:
    for name in ("transformer_image", "explainer_image"):
        image = getattr(spec.components, name)
        yield (
            f"components.{name}",
            not image or bool(_IMAGE.fullmatch(image)),
            "Name an image: registry/name:tag.",
        )
    if spec.components != Components():
        yield (
            "components",
            spec.engine in KSERVE_ENGINES and spec.scaling.kind != KNATIVE,
            "Transformers and explainers run beside a KServe predictor in Standard mode only: "
            f"choose {KSERVE_TRITON} or {KSERVE_VLLM} without knative.",
        )


def _packing(spec: ServingSpec) -> Iterator[Rule]:
    for index, one in enumerate(spec.packed):
        problem = model_names.model_name_problem(one.model)
        yield f"packed.{index}.model", not problem, problem
        yield f"packed.{index}.version", one.version >= 1, "Name a version by its number, from 1."
    if not spec.packed:
        return
    models = [one.model for one in spec.packed]
    yield (
        "packed",
        len(set(models)) == len(models),
        "Triton serves a model under its name, so two versions of one cannot be packed: name each "
        "model once.",
    )
    yield "packed", len(models) <= MOST_PACKED, f"Pack at most {MOST_PACKED} further models."
    yield (
        "packed",
        spec.engine in ONNX_ENGINES,
        f"vLLM takes the whole share for one model: choose {' or '.join(ONNX_ENGINES)}.",
    )
    yield (
        "packed",
        spec.scaling.kind != KNATIVE,
        "Knative fetches one model for each pod: choose another autoscaler.",
    )
    yield (
        "packed",
        spec.storage.model_cache == "none",
        "KServe's cache holds one model for each deployment: set storage.model_cache to none.",
    )


def _llm(spec: ServingSpec, llm: Llm) -> Iterator[Rule]:
    yield (
        "gpus",
        spec.gpus == llm.tensor_parallel,
        f"tensor_parallel splits the model over the GPUs of one pod: use {llm.tensor_parallel}.",
    )
    yield (
        "llm.artifact",
        not (llm.artifact and llm.hugging_face_id),
        "State either hugging_face_id or artifact.",
    )
    if spec.engine == TRITON_VLLM:
        yield (
            "llm.hugging_face_id",
            bool(llm.hugging_face_id) or not llm.artifact,
            "Triton's vLLM backend loads weights by their Hugging Face id; for files of your own "
            f"choose {KSERVE_VLLM}.",
        )
        yield "llm.nodes", llm.nodes == 1, f"Triton runs on one node; choose {LLM_SERVICE}."
    if spec.engine == KSERVE_VLLM and llm.nodes > 1:
        yield (
            "llm.artifact",
            not llm.hugging_face_id,
            "KServe runs several nodes only from pvc:// or oci://: state artifact, or choose "
            f"{LLM_SERVICE}.",
        )
    if llm.nodes > 1:
        yield (
            "gpu_resource",
            spec.gpu_resource == "nvidia.com/gpu",
            "A model over several nodes takes whole GPUs: nvidia.com/gpu.",
        )
