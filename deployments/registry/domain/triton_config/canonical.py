"""The canonical form of configurations that mean the same to Triton, so that they can be compared."""

from __future__ import annotations

from typing import Any, Final

from deployments.registry.domain.signatures import Signature
from deployments.registry.domain.triton_config import schema

# The older name of a backend with its file format.
_BACKEND_OF_PLATFORM: Final = {
    "onnxruntime_onnx": "onnxruntime",
    "pytorch_libtorch": "pytorch",
    "tensorrt_plan": "tensorrt",
}
_DEFAULT_IDLE_US: Final = 1_000_000
_ENGINE_CACHE: Final = ("trt_engine_cache_enable", "trt_engine_cache_path")


def canonical(config: Any, signature: Signature) -> Any:
    """Return a copy with Triton's defaults written, and without what has no meaning: names of instance groups,
    warm-ups and initial states, formats of inputs, the path of the engine cache.
    """
    copy = schema.new_config()
    copy.CopyFrom(config)
    _name_backend(copy, signature)
    if copy.version_policy.WhichOneof("policy_choice") in (None, "latest"):
        latest = copy.version_policy.latest
        latest.num_versions = latest.num_versions or 1
    for entry in copy.input:
        entry.ClearField("format")
    _complete_instances(copy)
    _drop_defaults(copy)
    if copy.HasField("dynamic_batching"):
        _simplify_queue(copy.dynamic_batching)
    if copy.HasField("sequence_batching"):
        _complete_sequence(copy.sequence_batching)
    for warm_up in copy.model_warmup:
        warm_up.ClearField("name")
        warm_up.count = warm_up.count or 1
    return copy


def _name_backend(config: Any, signature: Signature) -> None:
    platform = _BACKEND_OF_PLATFORM.get(config.platform, "")
    if platform and config.backend in ("", platform):
        config.backend = platform
        config.ClearField("platform")
    config.backend = config.backend or signature.backend.name
    if config.default_model_filename == signature.backend.model_file:
        config.ClearField("default_model_filename")


def _complete_instances(config: Any) -> None:
    groups = list(config.instance_group) or [config.instance_group.add()]
    for group in groups:
        group.ClearField("name")
        group.count = group.count or 1
        group.gpus.sort()
        group.rate_limiter.resources.sort(key=lambda item: (getattr(item, "global"), item.name))


def _drop_defaults(config: Any) -> None:
    optimization = config.optimization
    for name in ("input_pinned_memory", "output_pinned_memory"):
        if optimization.HasField(name) and getattr(optimization, name).enable:
            optimization.ClearField(name)
    for accelerator in optimization.execution_accelerators.gpu_execution_accelerator:
        for key in _ENGINE_CACHE:
            accelerator.parameters.pop(key, None)
    if not optimization.ListFields():
        config.ClearField("optimization")


def _simplify_queue(batching: Any) -> None:
    batching.preferred_batch_size.sort()
    default = batching.default_queue_policy
    policies = batching.priority_queue_policy
    for level in [level for level in policies if policies[level] == default]:
        del policies[level]
    if not default.ListFields():
        batching.ClearField("default_queue_policy")


def _complete_sequence(batching: Any) -> None:
    batching.max_sequence_idle_microseconds = (
        batching.max_sequence_idle_microseconds or _DEFAULT_IDLE_US
    )
    if batching.HasField("oldest"):
        batching.oldest.preferred_batch_size.sort()
    for state in batching.state:
        for initial in state.initial_state:
            initial.ClearField("name")
