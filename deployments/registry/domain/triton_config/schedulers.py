"""Dynamic and sequence batching in a ModelConfig."""

from __future__ import annotations

from typing import Any, Final

from deployments.registry.domain.signatures import Signature, Tensor
from deployments.registry.domain.triton_config import schema
from deployments.spec.domain import triton_values
from deployments.spec.domain.model_settings import ModelSettings
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.spec.domain.triton_scheduling import Queue, Sequence

CORRELATION: Final = "CONTROL_SEQUENCE_CORRID"
# The field of a control with the values for false and true, by the dtype of its input.
FALSE_TRUE: Final = {
    "INT32": "int32_false_true",
    "FP32": "fp32_false_true",
    "BOOL": "bool_false_true",
}
# Dtypes that Triton converts a correlation id to.
CORRELATION_DTYPES: Final = ("UINT64", "INT64", "UINT32", "INT32", "STRING")


def add(config: Any, signature: Signature, spec: ServingSpec | ModelSettings) -> None:
    """Add the scheduler, at most one. Without one, requests run alone, in order."""
    if spec.triton.sequence is not None:
        _add_sequence(config.sequence_batching, spec.triton.sequence, signature)
    elif spec.batching.is_dynamic and signature.is_batched:
        batching = config.dynamic_batching
        batching.SetInParent()
        batching.preferred_batch_size.extend(spec.batching.preferred_batch_sizes)
        batching.max_queue_delay_microseconds = spec.batching.max_queue_delay_us
        batching.preserve_ordering = spec.batching.preserve_ordering
        _add_queue(batching, spec.triton.queue)


def _add_queue(batching: Any, queue: Queue) -> None:
    if queue.max_size or queue.timeout_us or queue.allow_timeout_override or _delays(queue):
        _fill_policy(batching.default_queue_policy, queue, queue.max_size, queue.timeout_us)
    if not queue.priority_levels:
        return
    batching.priority_levels = queue.priority_levels
    batching.default_priority_level = queue.default_priority_level
    if not (queue.priority_max_sizes or queue.priority_timeouts_us):
        return
    for index in range(queue.priority_levels):
        size = queue.priority_max_sizes[index] if queue.priority_max_sizes else queue.max_size
        timeout = (
            queue.priority_timeouts_us[index] if queue.priority_timeouts_us else queue.timeout_us
        )
        _fill_policy(batching.priority_queue_policy[index + 1], queue, size, timeout)


def _delays(queue: Queue) -> bool:
    return queue.timeout_action == "delay"


def _fill_policy(policy: Any, queue: Queue, size: int, timeout_us: int) -> None:
    policy.SetInParent()
    if _delays(queue):
        schema.set_delay(policy)
    policy.default_timeout_microseconds = timeout_us
    policy.allow_timeout_override = queue.allow_timeout_override
    policy.max_queue_size = size


def _add_sequence(batching: Any, sequence: Sequence, signature: Signature) -> None:
    batching.max_sequence_idle_microseconds = sequence.max_idle_us
    tensors = {tensor.name: tensor for tensor in (*signature.inputs, *signature.outputs)}
    for kind, name in sequence.controls.items():
        _add_control(batching.control_input.add(name=name), kind, tensors.get(name))
    for source, target in triton_values.pairs_of(sequence.states).items():
        _add_state(batching.state.add(input_name=source, output_name=target), tensors, signature)
    if sequence.strategy == "direct":
        batching.direct.SetInParent()
        batching.direct.max_queue_delay_microseconds = sequence.max_queue_delay_us
        batching.direct.minimum_slot_utilization = sequence.minimum_slot_utilization_percent / 100
    else:
        batching.oldest.max_candidate_sequences = sequence.max_candidate_sequences
        batching.oldest.max_queue_delay_microseconds = sequence.max_queue_delay_us
        batching.oldest.preferred_batch_size.extend(sequence.preferred_batch_sizes)


def _add_control(entry: Any, kind: str, tensor: Tensor | None) -> None:
    """Add a control input. The dtype follows the model's input; the checks name an input that is missing or of
    another dtype.
    """
    control = entry.control.add(kind=schema.control_kind(kind))
    if kind == CORRELATION:
        dtype = tensor.dtype if tensor and tensor.dtype in CORRELATION_DTYPES else "UINT64"
        control.data_type = schema.data_type(dtype)
        return
    field = FALSE_TRUE.get(tensor.dtype if tensor else "INT32", "int32_false_true")
    getattr(control, field).extend((0, 1))


def _add_state(entry: Any, tensors: dict[str, Tensor], signature: Signature) -> None:
    """Add zeros as the state at the start of a sequence: without an initial state Triton passes uninitialised
    memory.
    """
    tensor = tensors.get(entry.input_name)
    if tensor is None:
        return
    dims = tensor.dims[1:] if signature.is_batched else tensor.dims
    entry.data_type = schema.data_type(tensor.dtype)
    entry.dims.extend(dims or [1])
    entry.initial_state.add(
        name=f"{entry.input_name} zeros",
        data_type=entry.data_type,
        dims=[max(dim, 1) for dim in dims] or [1],
        zero_data=True,
    )
