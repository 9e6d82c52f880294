"""Triton's config.pbtxt for an ONNX model. Deterministic: the same signature gives the same text.

If max_batch_size is above 0, Triton adds the batch dimension, so dims are written without it. Triton
rejects empty dims: a scalar per item is declared as [ 1 ] and reshaped. Without batching it rejects
the reshape too ("cannot have empty reshape for non-batching model"): the ONNX backend accepts plain
[ 1 ] for a tensor of rank 0.

Instances always have KIND_GPU: without a kind, Triton silently falls back to the CPU.
"""

from __future__ import annotations

from deployments.registry.domain.signatures import Signature, Tensor
from deployments.spec.domain.serving_spec import Batching, Packed, ServingSpec

# The settings of a model: the spec for the deployment's own, Packed for additional ones.
Tuning = ServingSpec | Packed

_TENSORRT_MODES = {"fp16": "FP16", "bf16": "BF16"}
# Without a cache, a pod builds the engine again for every shape at every start.
_ENGINE_CACHE = (
    ("trt_engine_cache_enable", "true"),
    ("trt_engine_cache_path", "/tmp/tensorrt"),  # noqa: S108  inside the pod
)


def render(*, model: str, signature: Signature, spec: Tuning | None = None) -> str:
    """`model` must be the directory name in the repository.

    Without a spec, this is the configuration of the version; default settings add nothing to it.
    """
    lines = [
        f"name: {_quote(model)}",
        'backend: "onnxruntime"',
        f"max_batch_size: {signature.max_batch_size}",
        *_tensors("input", signature.inputs, is_batched=signature.is_batched),
        *_tensors("output", signature.outputs, is_batched=signature.is_batched),
        "version_policy: { latest: { num_versions: 1 } }",
    ]
    if signature.is_batched:
        lines += _batching(spec.batching if spec else Batching())
    lines.append(_instances(spec.instances_per_gpu if spec else 1))
    if spec is not None:
        lines += [*_precision(spec), *_warm_up(signature, spec)]
    return "\n".join(lines) + "\n"


def is_default(signature: Signature, spec: Tuning) -> bool:
    """Whether the settings give the configuration of the version itself."""
    return render(model="", signature=signature) == render(model="", signature=signature, spec=spec)


def problem_with(signature: Signature, spec: Tuning) -> str:
    """The settings that this model cannot use, with the fix; empty if there are none."""
    batching = spec.batching
    if not signature.is_batched and (batching.max_queue_delay_us or batching.preferred_batch_sizes):
        return "The model does not support batching. Remove the queue delay and preferred sizes."
    too_large = [n for n in batching.preferred_batch_sizes if n > signature.max_batch_size]
    if too_large:
        return (
            f"The max batch size of the model is {signature.max_batch_size}. Remove "
            f"{too_large[0]} from the preferred sizes."
        )
    return ""


def render_vllm(*, model: str) -> str:
    """vLLM reads all other settings from model.json; its one instance uses all GPUs of the pod."""
    return "\n".join(
        (
            f"name: {_quote(model)}",
            'backend: "vllm"',
            "instance_group [ { count: 1 kind: KIND_MODEL } ]",
            _parameter("REPORT_CUSTOM_METRICS", "true"),
            "",
        )
    )


def _batching(batching: Batching) -> list[str]:
    if not batching.is_dynamic:
        return []
    fields = []
    if batching.preferred_batch_sizes:
        sizes = ", ".join(str(size) for size in sorted(batching.preferred_batch_sizes))
        fields.append(f"preferred_batch_size: [ {sizes} ] ")
    if batching.max_queue_delay_us:
        fields.append(f"max_queue_delay_microseconds: {batching.max_queue_delay_us} ")
    return [f"dynamic_batching {{ {''.join(fields)}}}"]


def _instances(count: int) -> str:
    """`count` instances on each GPU of the pod; each loads its own copy of the model."""
    return f"instance_group [ {{ kind: KIND_GPU count: {count} }} ]"


def _precision(spec: Tuning) -> list[str]:
    mode = _TENSORRT_MODES.get(spec.precision)
    if mode is None:
        return []
    parameters = "\n".join(
        f"    parameters {{ key: {_quote(key)} value: {_quote(value)} }}"
        for key, value in (("precision_mode", mode), *_ENGINE_CACHE)
    )
    return [
        "optimization { execution_accelerators { gpu_execution_accelerator [ {",
        '    name: "tensorrt"',
        parameters,
        "} ] } }",
    ]


def _warm_up(signature: Signature, spec: Tuning) -> list[str]:
    """Zeros, because random numbers may be invalid indices. Dynamic dimensions are 1."""
    if not spec.warm_up:
        return []
    batch = 1 if signature.is_batched else 0
    inputs = "\n".join(
        f"  inputs {{ key: {_quote(tensor.name)} value: {_warm_up_data(tensor, signature)} }}"
        for tensor in signature.inputs
    )
    return [f'model_warmup [ {{ name: "first" batch_size: {batch} count: 1', inputs, "} ]"]


def _warm_up_data(tensor: Tensor, signature: Signature) -> str:
    dims = [max(dim, 1) for dim in serving_dims(tensor, is_batched=signature.is_batched)] or [1]
    shape = ", ".join(str(dim) for dim in dims)
    return f"{{ data_type: TYPE_{tensor.dtype} dims: [ {shape} ] zero_data: true }}"


def _parameter(key: str, value: str) -> str:
    return f"parameters {{ key: {_quote(key)} value: {{ string_value: {_quote(value)} }} }}"


def serving_dims(tensor: Tensor, *, is_batched: bool) -> tuple[int, ...]:
    """The dims in Triton's metadata, without the batch dimension."""
    return tensor.dims[1:] if is_batched else tensor.dims


def _tensors(kind: str, tensors: tuple[Tensor, ...], *, is_batched: bool) -> list[str]:
    if not tensors:
        return []
    items = ",\n".join(_tensor(tensor, is_batched=is_batched) for tensor in tensors)
    return [f"{kind} [", items, "]"]


def _tensor(tensor: Tensor, *, is_batched: bool) -> str:
    dims = serving_dims(tensor, is_batched=is_batched)
    shape = ", ".join(str(dim) for dim in dims) if dims else "1"
    reshape = " reshape { shape: [ ] }" if is_batched and not dims else ""
    name = _quote(tensor.name)
    return f"  {{ name: {name} data_type: TYPE_{tensor.dtype} dims: [ {shape} ]{reshape} }}"


def _quote(text: str) -> str:
    """A protobuf text string: bytes other than plain ASCII are escaped in octal."""
    plain = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{plain}"'
