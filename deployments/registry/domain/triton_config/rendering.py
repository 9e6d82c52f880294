"""Triton's config.pbtxt for a model. Deterministic: the same signature gives the same text.

If max_batch_size is above 0, Triton adds the batch dimension, so dims are written without it. Triton
rejects empty dims: a scalar per item is declared as [ 1 ] and reshaped. Without batching it rejects
the reshape too ("cannot have empty reshape for non-batching model"): the ONNX backend accepts plain
[ 1 ] for a tensor of rank 0.

Instances always have a kind: without one, Triton silently falls back to the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deployments.registry.domain.signatures import ONNX_RUNTIME, Signature, Tensor
from deployments.registry.domain.triton_config import adapting, schedulers, schema, text, warm_up
from deployments.registry.domain.triton_config.dims import serving_dims
from deployments.registry.domain.triton_config.warm_up_samples import WarmUpSample
from deployments.spec.domain import triton_values
from deployments.spec.domain.model_settings import ModelSettings
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.spec.domain.triton_settings import Optimization, TritonSettings

# The settings of a model: the spec for the deployment's own, AdditionalModel for additional ones.
Tuning = ServingSpec | ModelSettings

# They refuse instances on a GPU.
CPU_BACKENDS: Final = ("openvino",)
TENSORRT_MODES: Final = {"fp16": "FP16", "bf16": "BF16"}
# Without a cache, Triton builds the engine again for every shape at every start. The path is on the
# pod's emptyDir for /tmp, which a restarted container finds again and a new pod does not.
ENGINE_CACHE: Final = {
    "trt_engine_cache_enable": "true",
    "trt_engine_cache_path": "/tmp/tensorrt",  # noqa: S108  inside the pod
}
WORKSPACE: Final = "max_workspace_size_bytes"


def render(
    *,
    model: str,
    signature: Signature,
    spec: Tuning | None = None,
    golden: Sequence[WarmUpSample] = (),
) -> str:
    """Render the config.pbtxt of a model. `model` must be the directory name in the repository.

    Without a spec, this is the configuration of the version; default settings add nothing to it.
    Without `golden`, a warm-up by golden requests has one in their place.
    """
    config = build(model=model, signature=signature, spec=spec or ModelSettings(), golden=golden)
    return text.write(config)


def build(
    *, model: str, signature: Signature, spec: Tuning, golden: Sequence[WarmUpSample] = ()
) -> Any:
    """Return the ModelConfig. Settings change the uploader's own configuration where there is one."""
    desired = _build(model, signature, spec, golden)
    if not signature.backend.config:
        return desired
    default = _build(model, signature, ModelSettings())
    return adapting.adapt(signature.backend.config, model=model, default=default, desired=desired)


def _build(
    model: str, signature: Signature, spec: Tuning, golden: Sequence[WarmUpSample] = ()
) -> Any:
    config = schema.new_config()
    config.name = model
    config.backend = signature.backend.name
    if signature.backend.is_file_named:
        config.default_model_filename = signature.backend.model_file
    config.max_batch_size = _max_batch_size(signature, spec)
    _add_tensors(config, signature, spec.triton)
    _add_version_policy(config, spec.triton)
    schedulers.add(config, signature, spec)
    _add_instances(config, signature, spec)
    for name, value in signature.backend.parameters.items():
        config.parameters[name].string_value = value
    for name, value in triton_values.pairs_of(spec.triton.parameters).items():
        config.parameters[name].string_value = value
    for name, value in triton_values.pairs_of(spec.triton.metric_tags).items():
        config.metric_tags[name] = value
    _add_tensorrt(config, spec)
    _add_optimization(config, spec.triton.optimization)
    if spec.warm_up:
        warm_up.add(config, signature, spec.triton, golden, managed=managed_tensors(spec.triton))
    if spec.triton.response_cache_mib:
        config.response_cache.enable = True
    if spec.triton.decoupled:
        config.model_transaction_policy.decoupled = True
    return config


def is_default(signature: Signature, spec: Tuning) -> bool:
    """Whether the settings give the configuration of the version itself."""
    default = build(model="", signature=signature, spec=ModelSettings())
    return bool(default == build(model="", signature=signature, spec=spec))


def render_vllm(*, model: str) -> str:
    """Render the config.pbtxt of vLLM, which reads all other settings from model.json; its one instance uses
    all GPUs of the pod.
    """
    config = schema.new_config()
    config.name, config.backend = model, "vllm"
    config.instance_group.add(count=1, kind=schema.group_kind("KIND_MODEL"))
    config.parameters["REPORT_CUSTOM_METRICS"].string_value = "true"
    return text.write(config)


def managed_tensors(triton: TritonSettings) -> set[str]:
    """Return tensors that Triton's sequence batcher fills or keeps; they are no inputs or outputs of requests."""
    if triton.sequence is None:
        return set()
    states = triton_values.pairs_of(triton.sequence.states)
    return {*triton.sequence.controls.values(), *states, *states.values()}


def _max_batch_size(signature: Signature, spec: Tuning) -> int:
    return (signature.is_batched and spec.batching.max_batch_size) or signature.max_batch_size


def _add_tensors(config: Any, signature: Signature, triton: TritonSettings) -> None:
    managed = managed_tensors(triton)
    lists = ((config.input, signature.inputs), (config.output, signature.outputs))
    for target, tensors in lists:
        for tensor in tensors:
            if tensor.name not in managed:
                _add_tensor(target.add(), tensor, is_batched=signature.is_batched)


def _add_tensor(entry: Any, tensor: Tensor, *, is_batched: bool) -> None:
    dims = serving_dims(tensor, is_batched=is_batched)
    entry.name, entry.data_type = tensor.name, schema.data_type(tensor.dtype)
    entry.dims.extend(dims or [1])
    if is_batched and not dims:
        entry.reshape.SetInParent()


def _add_version_policy(config: Any, triton: TritonSettings) -> None:
    policy = config.version_policy
    if triton.version_policy == "all":
        policy.all.SetInParent()
    elif triton.version_policy == "specific":
        policy.specific.versions.extend(triton.versions)
    else:
        policy.latest.num_versions = next(iter(triton.versions), 1)


def _add_instances(config: Any, signature: Signature, spec: Tuning) -> None:
    """Add `count` instances on each GPU of the pod; each loads its own copy of the model."""
    instances = spec.triton.instances
    device = "cpu" if signature.backend.name in CPU_BACKENDS else instances.kind
    kind = schema.group_kind(f"KIND_{device.upper()}")
    group = config.instance_group.add(kind=kind, count=spec.instances_per_gpu, gpus=instances.gpus)
    for is_global, resources in ((False, instances.resources), (True, instances.global_resources)):
        for name, count in triton_values.pairs_of(resources).items():
            resource = group.rate_limiter.resources.add(name=name, count=int(count))
            if is_global:
                setattr(resource, "global", True)
    if instances.priority:
        group.rate_limiter.priority = instances.priority


def _add_tensorrt(config: Any, spec: Tuning) -> None:
    mode = TENSORRT_MODES.get(spec.precision)
    if mode is None or spec.triton.instances.kind != "gpu":
        return
    accelerators = config.optimization.execution_accelerators.gpu_execution_accelerator
    accelerator = accelerators.add(name="tensorrt")
    values = {"precision_mode": mode, **ENGINE_CACHE}
    if spec.triton.optimization.tensorrt_workspace_mib:
        values[WORKSPACE] = str(spec.triton.optimization.tensorrt_workspace_mib * 1024 * 1024)
    for name, value in values.items():
        accelerator.parameters[name] = value


def _add_optimization(config: Any, optimization: Optimization) -> None:
    if optimization.graph_level:
        config.optimization.graph.level = optimization.graph_level
    if not optimization.input_pinned_memory:
        config.optimization.input_pinned_memory.enable = False
        config.optimization.input_pinned_memory.SetInParent()
    if not optimization.output_pinned_memory:
        config.optimization.output_pinned_memory.enable = False
        config.optimization.output_pinned_memory.SetInParent()
    if optimization.eager_batching:
        config.optimization.eager_batching = True


def is_onnx(signature: Signature) -> bool:
    return signature.backend.name == ONNX_RUNTIME.name
