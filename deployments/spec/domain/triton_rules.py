"""Rules across Triton's settings of one model, each with its fix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

from portal.core.definitions import Rule

if TYPE_CHECKING:
    from deployments.spec.domain.model_settings import Batching, Precision
    from deployments.spec.domain.triton_scheduling import Queue, Sequence
    from deployments.spec.domain.triton_settings import TritonSettings, WarmUpRequests

_VERSION: Final = 1


class Settings(Protocol):
    """The settings of one model in Triton: the deployment's own, or another one next to it."""

    @property
    def batching(self) -> Batching: ...
    @property
    def warm_up(self) -> bool: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def triton(self) -> TritonSettings: ...


def rules_of(settings: Settings) -> Iterator[Rule]:
    triton = settings.triton
    yield from _queue(triton.queue, settings.batching)
    yield from _versions(triton)
    yield (
        "triton.warm_up",
        settings.warm_up or triton.warm_up == type(triton.warm_up)(),
        "These requests run with warm-up only. Turn warm_up on.",
    )
    yield from _warm_up(triton.warm_up)
    yield (
        "triton.instances.gpus",
        triton.instances.kind == "gpu" or not triton.instances.gpus,
        "Instances on the CPU use no GPU. Leave it empty.",
    )
    yield (
        "precision",
        triton.instances.kind == "gpu" or settings.precision == "original",
        "TensorRT runs on the GPU. Use original, or instances on the GPU.",
    )
    yield (
        "triton.optimization.tensorrt_workspace_mib",
        settings.precision != "original" or not triton.optimization.tensorrt_workspace_mib,
        "Only TensorRT has a workspace. Set precision to fp16 or bf16.",
    )
    yield (
        "triton.response_cache_mib",
        not (triton.response_cache_mib and (triton.decoupled or triton.sequence)),
        "Triton caches no responses of sequences and no decoupled ones. Turn the cache off.",
    )
    if triton.sequence is not None:
        yield from _sequence(triton.sequence, settings)


def _warm_up(warm_up: WarmUpRequests) -> Iterator[Rule]:
    is_golden = warm_up.data == "golden"
    yield (
        "triton.warm_up.golden_ids",
        is_golden or not warm_up.golden_ids,
        "Only golden requests have ids. Leave it empty, or set the warm-up data to golden.",
    )
    for name in ("batch_sizes", "shapes"):
        yield (
            f"triton.warm_up.{name}",
            not (is_golden and getattr(warm_up, name)),
            "Golden requests have their own shapes. Leave it empty.",
        )


def _queue(queue: Queue, batching: Batching) -> Iterator[Rule]:
    yield (
        "triton.queue",
        batching.is_dynamic or queue == type(queue)(),
        "Only dynamic batching has this queue. Turn batching.is_dynamic on.",
    )
    levels = queue.priority_levels
    yield (
        "triton.queue.default_priority_level",
        (1 <= queue.default_priority_level <= levels)
        if levels
        else not queue.default_priority_level,
        f"Use 1 to {levels}." if levels else "There are no priority levels. Leave it empty.",
    )
    for name in ("priority_max_sizes", "priority_timeouts_us"):
        yield (
            f"triton.queue.{name}",
            len(getattr(queue, name)) in (0, levels),
            f"Use one number for each of the {levels} levels."
            if levels
            else "There are no priority levels. Leave it empty.",
        )


def _versions(triton: TritonSettings) -> Iterator[Rule]:
    policy, versions = triton.version_policy, triton.versions
    is_right = {
        "latest": len(versions) <= 1,
        "all": not versions,
        "specific": _VERSION in versions,
    }[policy]
    fix = {
        "latest": "Use one number: how many of the latest versions.",
        "all": "All versions are loaded. Leave it empty.",
        "specific": "The model is in version directory 1. Name it.",
    }[policy]
    yield "triton.versions", is_right, fix


def _sequence(sequence: Sequence, settings: Settings) -> Iterator[Rule]:
    yield (
        "triton.sequence",
        not settings.batching.is_dynamic,
        "Triton takes one scheduler. Turn batching.is_dynamic off, or sequence batching.",
    )
    is_direct, defaults = sequence.strategy == "direct", type(sequence)()
    of_oldest = "Only the strategy oldest uses it. Leave it as it is, or use oldest."
    yield (
        "triton.sequence.max_candidate_sequences",
        not is_direct or sequence.max_candidate_sequences == defaults.max_candidate_sequences,
        of_oldest,
    )
    yield (
        "triton.sequence.preferred_batch_sizes",
        not is_direct or not sequence.preferred_batch_sizes,
        of_oldest,
    )
    yield (
        "triton.sequence.minimum_slot_utilization_percent",
        is_direct or not sequence.minimum_slot_utilization_percent,
        "Only the strategy direct has slots. Use 0, or direct.",
    )
    inputs = list(sequence.controls.values())
    yield (
        "triton.sequence.start_input",
        len(set(inputs)) == len(inputs),
        "Each control needs an input of its own.",
    )
