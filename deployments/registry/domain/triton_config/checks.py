"""Settings against the model's signature: what Triton would refuse, and the known traps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deployments.registry.domain.signatures import ANY, Signature
from deployments.registry.domain.triton_config import own_config_checks, sequence_checks
from deployments.registry.domain.triton_config.dims import serving_dims
from deployments.registry.domain.triton_config.rendering import (
    CPU_BACKENDS,
    Tuning,
    is_onnx,
)
from deployments.registry.domain.triton_config.text import ConfigProblem
from deployments.spec.domain import triton_values
from deployments.spec.domain.serving_spec import ServingSpec

# Backends of uploaded models that answer each request exactly once.
_SINGLE_RESPONSE: Final = ("onnxruntime", "fil", "openvino", "pytorch", "tensorrt")


def problem_with(signature: Signature, spec: Tuning) -> str:
    """Return the first setting that this model cannot use, with the fix. Empty if there is none."""
    return next((str(problem) for problem in problems_with(signature, spec)), "")


def problems_with(signature: Signature, spec: Tuning) -> list[ConfigProblem]:
    """Return settings that this model cannot use."""
    if signature.backend.config and (problem := own_config_checks.problem_with(signature, spec)):
        return [problem]
    return [
        *_batching(signature, spec),
        *_backend(signature, spec),
        *_warm_up(signature, spec),
        *sequence_checks.problems_with(signature, spec.triton.sequence),
    ]


def _batching(signature: Signature, spec: Tuning) -> Iterator[ConfigProblem]:
    batching, queue = spec.batching, spec.triton.queue
    is_used = batching.max_queue_delay_us or batching.preferred_batch_sizes
    if not signature.is_batched and (
        is_used or batching.preserve_ordering or batching.max_batch_size
    ):
        yield ConfigProblem(
            "The model does not support batching.",
            "Remove the queue delay, preferred sizes, order and max batch size.",
            setting="batching",
        )
    elif not signature.is_batched and queue != type(queue)():
        yield ConfigProblem(
            "The model does not support batching.",
            "Remove the queue and priorities.",
            setting="triton.queue",
        )
    if not signature.is_batched:
        return
    if batching.max_batch_size > signature.max_batch_size:
        yield ConfigProblem(
            f"The max batch size of the model is {signature.max_batch_size}.",
            "Use at most that, or leave it empty.",
            setting="batching.max_batch_size",
        )
    most = batching.max_batch_size or signature.max_batch_size
    sequence = spec.triton.sequence
    for sizes, label, setting in (
        (batching.preferred_batch_sizes, "preferred sizes", "batching.preferred_batch_sizes"),
        (
            sequence.preferred_batch_sizes if sequence else (),
            "preferred sizes of sequences",
            "triton.sequence.preferred_batch_sizes",
        ),
        (
            spec.triton.warm_up.batch_sizes,
            "warm-up batch sizes",
            "triton.warm_up.batch_sizes",
        ),
    ):
        too_large = [size for size in sizes if size > most]
        if too_large:
            yield ConfigProblem(
                f"The max batch size of the model is {most}.",
                f"Remove {too_large[0]} from the {label}.",
                setting=setting,
            )


def _backend(signature: Signature, spec: Tuning) -> Iterator[ConfigProblem]:
    name = signature.backend.name
    if spec.precision != "original" and not is_onnx(signature):
        yield ConfigProblem(
            "Only ONNX models can be converted to TensorRT.",
            "Set precision to original.",
            setting="precision",
        )
    yield from _device(name, spec)
    if spec.triton.decoupled and name in _SINGLE_RESPONSE:
        yield ConfigProblem(
            f"The backend {name} answers each request exactly once.",
            "Turn decoupled off.",
            setting="triton.decoupled",
        )
    if spec.triton.optimization.graph_level and not is_onnx(signature):
        yield ConfigProblem(
            "Only ONNX Runtime optimises graphs.",
            "Leave graph optimisation empty.",
            setting="triton.optimization.graph_level",
        )
    allowed = triton_values.PARAMETERS_OF.get(name, frozenset())
    for parameter in triton_values.pairs_of(spec.triton.parameters):
        if parameter in signature.backend.parameters:
            yield ConfigProblem(
                f"The version sets {parameter} itself.", "Remove it.", setting="triton.parameters"
            )
        elif parameter not in allowed:
            known = ", ".join(sorted(allowed)) or "none"
            yield ConfigProblem(
                f"The backend {name} has no parameter {parameter}.",
                f"Its parameters: {known}.",
                setting="triton.parameters",
            )


def _device(name: str, spec: Tuning) -> Iterator[ConfigProblem]:
    if name in CPU_BACKENDS and spec.triton.instances.gpus:
        yield ConfigProblem(
            f"The backend {name} runs on the CPU only.",
            "Remove the GPU indices.",
            setting="triton.instances.gpus",
        )
    if name == "tensorrt" and spec.triton.instances.kind != "gpu":
        yield ConfigProblem(
            "A TensorRT plan runs on a GPU only.",
            "Set instances on to GPU.",
            setting="triton.instances.kind",
        )


def _warm_up(signature: Signature, spec: Tuning) -> Iterator[ConfigProblem]:
    warm_up = spec.triton.warm_up
    if warm_up.batch_sizes and not signature.is_batched:
        yield ConfigProblem(
            "The model does not support batching.",
            "Remove the warm-up batch sizes.",
            setting="triton.warm_up.batch_sizes",
        )
    inputs = {tensor.name: tensor for tensor in signature.inputs}
    for name, shape in triton_values.pairs_of(warm_up.shapes).items():
        tensor = inputs.get(name)
        if tensor is None:
            yield ConfigProblem(
                f'The model has no input "{name}".',
                f"Use {', '.join(inputs)}.",
                setting="triton.warm_up.shapes",
            )
            continue
        dims, shaped = (
            serving_dims(tensor, is_batched=signature.is_batched),
            triton_values.dims_of(shape),
        )
        if len(dims) != len(shaped) or any(
            own not in (ANY, value) for own, value in zip(dims, shaped, strict=True)
        ):
            yield ConfigProblem(
                f"The warm-up shape {shape} of {name} does not fit its dims {list(dims)}.",
                f"Use {len(dims)} dimensions without the batch.",
                setting="triton.warm_up.shapes",
            )
    if warm_up.data == "random" and any(item.dtype == "STRING" for item in signature.inputs):
        yield ConfigProblem(
            "Triton cannot generate random text.",
            "Set the warm-up data to zeros.",
            setting="triton.warm_up.data",
        )


def warnings_of(signature: Signature, spec: Tuning) -> list[ConfigProblem]:
    """Return known traps: Triton takes these settings and does something else than was meant."""
    return [
        ConfigProblem(message, fix, is_blocking=False)
        for is_trap, message, fix in (*_traps(signature, spec), *_traps_of_pods(spec))
        if is_trap
    ]


def _traps(signature: Signature, spec: Tuning) -> Iterator[tuple[bool, str, str]]:
    triton, queue = spec.triton, spec.triton.queue
    yield (
        bool(spec.batching.preferred_batch_sizes) and signature.backend.name != "tensorrt",
        "Preferred batch sizes help TensorRT plans only; others run smaller batches later.",
        "Leave them empty.",
    )
    yield (
        bool(queue.timeout_us) and queue.timeout_us <= spec.batching.max_queue_delay_us,
        f"A single request waits {spec.batching.max_queue_delay_us} µs for a batch and times out after "
        f"{queue.timeout_us} µs.",
        "Use a queue timeout above the queue delay.",
    )
    yield (
        triton.instances.kind == "cpu",
        "Instances run on the CPU, but the pod still holds its GPU.",
        "Use instances on the GPU.",
    )
    yield (
        bool(triton.instances.is_rate_limited and spec.instances_per_gpu == 1)
        and not getattr(spec, "additional_models", ()),
        "A single instance does not share its resources, so the rate limiter changes nothing.",
        "Use several instances, or leave the rate limiter empty.",
    )
    shaped = triton_values.pairs_of(triton.warm_up.shapes)
    dynamic = [
        tensor.name
        for tensor in signature.inputs
        if ANY in serving_dims(tensor, is_batched=signature.is_batched)
        and tensor.name not in shaped
    ]
    yield (
        spec.warm_up and bool(dynamic) and triton.warm_up.data != "golden",
        f"The warm-up uses 1 for the dynamic dimensions of {', '.join(dynamic)}, so real shapes are "
        "still slow the first time.",
        f"Set the warm-up shapes, for example {dynamic[0] if dynamic else ''}=3x640x640.",
    )


def _traps_of_pods(spec: Tuning) -> Iterator[tuple[bool, str, str]]:
    """Yield traps of the server and its pods, which only the deployment's own settings know."""
    if not isinstance(spec, ServingSpec):
        return
    yield (
        spec.triton.sequence is not None and spec.max_replicas > 1,
        "Requests of one sequence may reach different pods: no route keeps them together.",
        "Use one replica, or send a sequence over one gRPC stream.",
    )
    yield (
        bool(spec.triton.response_cache_mib) and spec.summary_latencies,
        "Triton reports no request summary for models with a response cache.",
        "Turn latency summaries off, or the cache.",
    )
