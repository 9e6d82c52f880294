"""Rules for autoscalers. A setting that an autoscaler cannot follow is refused at its field, with one that it
can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deployments.spec.domain.engines import KSERVE_ENGINES, LLM_SERVICE, WITHOUT_QUEUE_METRICS
from deployments.spec.domain.scaling import (
    AUTOMATIC,
    DEFAULT_TARGETS,
    FIXED,
    KEDA,
    KNATIVE,
    LANGUAGE_METRICS,
    PERCENTAGES,
    POD_METRICS,
    Scaling,
)
from portal.core.definitions import Rule

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

_NEVER_WAKES = (
    "Queue, latency and GPU utilisation come from running pods, so they can't scale up from zero. "
    "Use kind knative, metric gateway-latency, a job queue (sqs, kafka, redis) or office_hours."
)


def rules_of(spec: ServingSpec) -> Iterator[Rule]:
    scaling = spec.scaling
    kind = scaling.kind
    if kind == AUTOMATIC:
        yield from _without_kind(scaling)
        return
    metrics = [metric for watcher, metric in DEFAULT_TARGETS if watcher == kind]
    if kind == FIXED:
        yield (
            "max_replicas",
            spec.min_replicas == spec.max_replicas,
            "Set max_replicas equal to min_replicas, or set scaling.kind to hpa, keda or knative.",
        )
    yield (
        "scaling.metric",
        scaling.metric in metrics or (not scaling.metric and kind in (FIXED, KEDA)),
        f"{kind} scales by {' or '.join(metrics) or 'no metric; leave it empty'}.",
    )
    most = 100 if scaling.metric in PERCENTAGES else 100_000
    is_right = 1 <= scaling.target <= most if scaling.metric else scaling.target == 0
    yield "scaling.target", is_right, f"Use 1 to {most}, or remove it if no metric is set."
    yield (
        "scaling.can_scale_to_zero",
        not scaling.can_scale_to_zero or kind in (KEDA, KNATIVE),
        "Only keda and knative can scale up from zero. Use one of them.",
    )
    yield "scaling.can_scale_to_zero", _can_wake(scaling), _NEVER_WAKES
    yield from _scaling_of_engine(spec)
    yield (
        "scaling.metric",
        spec.llm is not None or scaling.metric not in LANGUAGE_METRICS,
        "Only language models have it. Use queue, latency or gpu.",
    )
    yield from _of_gpus(spec)
    yield from _triggers(scaling, spec.max_replicas)


def _without_kind(scaling: Scaling) -> Iterator[Rule]:
    first = "Set scaling.kind first: keda, knative or hpa."
    yield "scaling.metric", not scaling.metric, first
    yield "scaling.target", scaling.target == 0, first
    yield "scaling.can_scale_to_zero", not scaling.can_scale_to_zero, first
    yield from _triggers(scaling, 1)


def _can_wake(scaling: Scaling) -> bool:
    """Queue and latency are metrics of pods: without a pod there are none."""
    if not scaling.can_scale_to_zero or scaling.kind != KEDA:
        return True
    has_trigger = bool(scaling.job_queues) or scaling.office_hours is not None
    return has_trigger or scaling.metric not in POD_METRICS


def _scaling_of_engine(spec: ServingSpec) -> Iterator[Rule]:
    kind = spec.scaling.kind
    if kind == KNATIVE:
        yield (
            "scaling.kind",
            spec.engine in KSERVE_ENGINES,
            f"{spec.engine} does not use Knative. Use keda or a kserve engine.",
        )
    yield (
        "scaling.metric",
        spec.engine not in WITHOUT_QUEUE_METRICS
        or spec.scaling.metric not in ("queue", "kv-cache"),
        f"{spec.engine} reports neither waiting requests nor its KV cache. Use first-token, latency or gpu.",
    )
    if spec.engine == LLM_SERVICE:
        yield (
            "scaling.kind",
            kind == FIXED,
            (
                "The portal does not autoscale an LLMInferenceService. Use fixed, or kserve-vllm to "
                "autoscale."
            ),
        )
    if spec.llm is not None and spec.llm.nodes > 1:
        yield (
            "scaling.kind",
            kind == FIXED,
            "Multi-node models do not support autoscaling. Use fixed.",
        )


def _of_gpus(spec: ServingSpec) -> Iterator[Rule]:
    scaling = spec.scaling
    is_slice = "/mig-" in spec.gpu_resource
    of_whole_gpus = "GPU metrics are those of whole GPUs, not of a MIG slice. Use queue."
    yield "scaling.metric", not (is_slice and scaling.metric == "gpu"), of_whole_gpus
    limit = scaling.max_gpu_memory_percent
    yield "scaling.max_gpu_memory_percent", not (is_slice and limit), of_whole_gpus
    yield (
        "scaling.max_gpu_memory_percent",
        spec.llm is None or not limit,
        "A language model's server reserves the GPU's memory when it starts, so its use says nothing. "
        "Remove it.",
    )


def _triggers(scaling: Scaling, max_replicas: int) -> Iterator[Rule]:
    is_keda, hours = scaling.kind == KEDA, scaling.office_hours
    only_keda = "Only keda supports it. Set scaling.kind to keda or remove it."
    yield "scaling.office_hours", is_keda or hours is None, only_keda
    for name in scaling.job_queues:
        yield f"scaling.{name}", is_keda, only_keda
    for name in ("max_latency_ms", "max_gpu_memory_percent"):
        yield f"scaling.{name}", is_keda or getattr(scaling, name) == 0, only_keda
    yield (
        "scaling.max_latency_ms",
        not (scaling.max_latency_ms and scaling.metric == "latency"),
        "Latency is the metric already. Set its target instead.",
    )
    if is_keda:
        yield (
            "scaling.metric",
            bool(scaling.metric or hours or scaling.job_queues),
            "keda needs a trigger: queue, latency, gateway-latency, gpu, kv-cache, first-token, a job queue "
            "or office_hours.",
        )
    if hours is not None:
        yield (
            "scaling.office_hours.replicas",
            1 <= hours.replicas <= max_replicas,
            f"Use 1 to max_replicas ({max_replicas}).",
        )
