"""Settings of Triton's config.pbtxt beyond batching: queue, sequences, instances, warm-up and the rest.

Each field is one setting of config.pbtxt; deployments/registry/domain/triton_config writes and reads it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from deployments.spec.domain import triton_values
from deployments.spec.domain.triton_scheduling import Queue, Sequence
from portal.core.definitions import Definition, setting


class Instances(Definition):
    """The instances of the model: the processors that they run on, and what limits them."""

    kind: Annotated[
        Literal["gpu", "cpu"],
        setting(
            "Instances on",
            "Always written: without a kind Triton may fall back to the CPU.",
            choices={"gpu": "GPU", "cpu": "CPU"},
        ),
    ] = "gpu"
    gpus: Annotated[
        tuple[int, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_gpu_indices),
        setting(
            "GPU indices",
            "GPUs of the pod, for example 0, 1. Leave empty for all.",
            fix="Use different numbers from 0 to 15.",
        ),
    ] = ()
    priority: Annotated[
        int,
        setting(
            "Instance priority",
            "Rate limiter: priority 2 runs half as often as 1. Default: 1.",
            is_empty_zero=True,
            ge=0,
            le=1000,
            fix="Use 0 (not set) to 1000.",
        ),
    ] = 0
    resources: Annotated[
        tuple[str, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_resources),
        setting(
            "Resources",
            "Rate limiter: what a run takes on its GPU, for example slots=1.",
            fix="Use name=count, for example slots=1.",
            **triton_values.PAIRS,
        ),
    ] = ()
    global_resources: Annotated[
        tuple[str, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_resources),
        setting(
            "Shared resources",
            "Rate limiter: the same, of all GPUs of the pod together.",
            fix="Use name=count, for example slots=1.",
            **triton_values.PAIRS,
        ),
    ] = ()

    @property
    def is_rate_limited(self) -> bool:
        return bool(self.priority or self.resources or self.global_resources)


class WarmUpRequests(Definition):
    """The requests of the warm-up."""

    data: Annotated[
        Literal["zeros", "random", "golden"],
        setting(
            "Warm-up data",
            "Zeros are valid indices for every model; random numbers may not be.",
            choices={
                "zeros": "Zeros",
                "random": "Random numbers",
                "golden": "Golden requests of the model",
            },
        ),
    ] = "zeros"
    golden_ids: Annotated[
        tuple[int, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_golden_ids),
        setting(
            "Golden requests",
            "Their ids. Leave empty for all that the model has at the request; later edits change nothing.",
            fix="Use up to 20 different ids of golden requests.",
        ),
    ] = ()
    batch_sizes: Annotated[
        tuple[int, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_batch_sizes),
        setting(
            "Warm-up batch sizes",
            "Default: 1. TensorRT builds an engine for each shape.",
            fix="Use at most eight sizes from 1 to 4096.",
        ),
    ] = ()
    count: Annotated[
        int, setting("Warm-up runs", "Runs of each batch size.", ge=1, le=100, fix="Use 1 to 100.")
    ] = 1
    shapes: Annotated[
        tuple[str, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_shapes),
        setting(
            "Warm-up shapes",
            "Shapes of inputs with dynamic dimensions, for example image=3x640x640. Default: 1 each.",
            fix="Use input=dimensions without the batch, for example image=3x640x640.",
            **triton_values.PAIRS,
        ),
    ] = ()


class Optimization(Definition):
    """Optimization settings: memory, graphs and TensorRT."""

    tensorrt_workspace_mib: Annotated[
        int,
        setting(
            "TensorRT workspace",
            "GPU memory while an engine is built. Leave empty for TensorRT's default.",
            unit="MiB",
            is_empty_zero=True,
            ge=0,
            le=1_000_000,
            fix="Use 0 (default) to 1000000 MiB.",
        ),
    ] = 0
    graph_level: Annotated[
        int,
        setting(
            "Graph optimisation",
            "ONNX Runtime: -1 basic, 1 extended. Leave empty for all.",
            is_empty_zero=True,
            ge=-1,
            le=1,
            fix="Use -1, 0 or 1.",
        ),
    ] = 0
    input_pinned_memory: Annotated[
        bool, setting("Pinned input memory", "Faster copies to the GPU.")
    ] = True
    output_pinned_memory: Annotated[
        bool, setting("Pinned output memory", "Faster copies from the GPU.")
    ] = True
    eager_batching: Annotated[
        bool, setting("Eager batching", "Prepare the next batch while one runs.")
    ] = False


class TritonSettings(Definition):
    """Settings of config.pbtxt. Triton's own default holds for a setting that is left out."""

    queue: Annotated[
        Queue,
        setting("Queue and priorities", "Which waiting requests run first, and how many may wait."),
    ] = Queue()
    sequence: Annotated[
        Sequence | None,
        setting(
            "Sequence batching", "For models with state: requests of a sequence reach one instance."
        ),
    ] = None
    instances: Annotated[
        Instances, setting("Instances and rate limiter", "Where copies of the model run.")
    ] = Instances()
    warm_up: Annotated[WarmUpRequests, setting("Warm-up requests", "What runs before traffic.")] = (
        WarmUpRequests()
    )
    optimization: Annotated[
        Optimization, setting("Optimisation", "Memory, graphs and TensorRT.")
    ] = Optimization()
    response_cache_mib: Annotated[
        int,
        setting(
            "Response cache",
            "Answers equal requests from the pod's memory. Leave empty to turn it off.",
            unit="MiB",
            is_empty_zero=True,
            ge=0,
            le=100_000,
            fix="Use 0 (off) to 100000 MiB.",
        ),
    ] = 0
    decoupled: Annotated[
        bool, setting("Decoupled", "Zero or several responses to a request, for streams.")
    ] = False
    version_policy: Annotated[
        Literal["latest", "all", "specific"],
        setting(
            "Version policy", "Which version directories Triton loads. A deployment has one, 1."
        ),
    ] = "latest"
    versions: Annotated[
        tuple[int, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_versions),
        setting(
            "Versions",
            "Latest: how many. Specific: which, for example 1.",
            fix="Use up to 16 different version directories, for latest one number.",
        ),
    ] = ()
    parameters: Annotated[
        tuple[str, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_parameters),
        setting(
            "Backend parameters",
            "For example intra_op_thread_count=2.",
            fix=f"Use name=value with one of {', '.join(sorted(triton_values.PARAMETERS))}.",
            **triton_values.PAIRS,
        ),
    ] = ()
    metric_tags: Annotated[
        tuple[str, ...],
        Field(strict=False),
        AfterValidator(triton_values.check_tags),
        setting(
            "Metric tags",
            "Labels of this model's metrics, for example tier=gold.",
            fix="Use name=value; names have letters, digits and '_'.",
            **triton_values.PAIRS,
        ),
    ] = ()
