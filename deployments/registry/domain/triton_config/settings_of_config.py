"""The settings that a ModelConfig states, as the JSON of ModelSettings. Nothing is checked here."""

from __future__ import annotations

from typing import Any, Final

from deployments.registry.domain.signatures import Signature
from deployments.registry.domain.triton_config import schedulers, schema
from deployments.registry.domain.triton_config.dims import serving_dims
from deployments.registry.domain.triton_config.rendering import (
    TENSORRT_MODES,
    WORKSPACE,
)
from deployments.spec.domain import triton_values
from deployments.spec.domain.model_settings import ModelSettings

_MIB: Final = 1024 * 1024
# The text switches the cache on; its size is an argument of the server.
DEFAULT_CACHE_MIB: Final = 256


def settings_of(config: Any, signature: Signature, base: ModelSettings) -> dict[str, Any]:
    """Return the settings that a config states. `config` is canonical. `base` has the settings that a text
    cannot state.
    """
    group = config.instance_group[0]
    return {
        "batching": _batching(config, signature),
        "instances_per_gpu": group.count,
        "warm_up": bool(config.model_warmup),
        "precision": _precision(config),
        "triton": {
            "queue": _queue(config.dynamic_batching),
            "sequence": _sequence(config),
            "instances": _instances(group),
            "warm_up": _warm_up(config, signature, base),
            "optimization": _optimization(config.optimization),
            "response_cache_mib": (base.triton.response_cache_mib or DEFAULT_CACHE_MIB)
            if config.response_cache.enable
            else 0,
            "decoupled": config.model_transaction_policy.decoupled,
            **_versions(config.version_policy),
            "parameters": [
                f"{name}={config.parameters[name].string_value}"
                for name in sorted(config.parameters)
                if name in triton_values.PARAMETERS and name not in signature.backend.parameters
            ],
            "metric_tags": [
                f"{name}={config.metric_tags[name]}" for name in sorted(config.metric_tags)
            ],
        },
    }


def _batching(config: Any, signature: Signature) -> dict[str, Any]:
    batching = config.dynamic_batching
    has_scheduler = config.WhichOneof("scheduling_choice") is not None
    is_smaller = 0 < config.max_batch_size < signature.max_batch_size
    return {
        # Without batching the setting has no effect, and so no text.
        "is_dynamic": config.HasField("dynamic_batching")
        or (not signature.is_batched and not has_scheduler),
        "max_queue_delay_us": batching.max_queue_delay_microseconds,
        "preferred_batch_sizes": list(batching.preferred_batch_size),
        "preserve_ordering": batching.preserve_ordering,
        "max_batch_size": config.max_batch_size if is_smaller else 0,
    }


def _queue(batching: Any) -> dict[str, Any]:
    default, levels = batching.default_queue_policy, batching.priority_levels
    stated = batching.priority_queue_policy
    known = range(1, min(levels, triton_values.MAX_LEVELS) + 1)
    policies = [stated.get(level, default) for level in known]
    sizes = [policy.max_queue_size for policy in policies]
    timeouts = [policy.default_timeout_microseconds for policy in policies]
    return {
        "max_size": default.max_queue_size,
        "timeout_us": default.default_timeout_microseconds,
        "timeout_action": "delay" if schema.delays(default) else "reject",
        "allow_timeout_override": default.allow_timeout_override,
        "priority_levels": levels,
        "default_priority_level": batching.default_priority_level,
        "priority_max_sizes": sizes if set(sizes) - {default.max_queue_size} else [],
        "priority_timeouts_us": timeouts
        if set(timeouts) - {default.default_timeout_microseconds}
        else [],
    }


def _sequence(config: Any) -> dict[str, Any] | None:
    if not config.HasField("sequence_batching"):
        return None
    batching = config.sequence_batching
    controls = {
        schema.control_name(control.kind): entry.name
        for entry in batching.control_input
        for control in entry.control[:1]
    }
    is_oldest = batching.HasField("oldest")
    values: dict[str, Any] = {
        "strategy": "oldest" if is_oldest else "direct",
        "max_idle_us": batching.max_sequence_idle_microseconds,
        "start_input": controls.get("CONTROL_SEQUENCE_START", ""),
        "ready_input": controls.get("CONTROL_SEQUENCE_READY", ""),
        "end_input": controls.get("CONTROL_SEQUENCE_END", ""),
        "correlation_input": controls.get(schedulers.CORRELATION, ""),
        "states": [f"{state.input_name}={state.output_name}" for state in batching.state],
    }
    if is_oldest:
        return values | {
            "max_candidate_sequences": batching.oldest.max_candidate_sequences,
            "max_queue_delay_us": batching.oldest.max_queue_delay_microseconds,
            "preferred_batch_sizes": list(batching.oldest.preferred_batch_size),
        }
    return values | {
        "max_queue_delay_us": batching.direct.max_queue_delay_microseconds,
        "minimum_slot_utilization_percent": round(batching.direct.minimum_slot_utilization * 100),
    }


def _instances(group: Any) -> dict[str, Any]:
    resources = group.rate_limiter.resources
    return {
        "kind": "cpu" if group.kind == schema.group_kind("KIND_CPU") else "gpu",
        "gpus": list(group.gpus),
        "priority": group.rate_limiter.priority,
        "resources": [
            f"{item.name}={item.count}" for item in resources if not getattr(item, "global")
        ],
        "global_resources": [
            f"{item.name}={item.count}" for item in resources if getattr(item, "global")
        ],
    }


def _precision(config: Any) -> str:
    modes = {mode: precision for precision, mode in TENSORRT_MODES.items()}
    for accelerator in config.optimization.execution_accelerators.gpu_execution_accelerator:
        if accelerator.name == "tensorrt":
            return modes.get(accelerator.parameters.get("precision_mode", ""), "original")
    return "original"


def _optimization(optimization: Any) -> dict[str, Any]:
    accelerators = optimization.execution_accelerators.gpu_execution_accelerator
    workspace = accelerators[0].parameters.get(WORKSPACE, "0") if accelerators else "0"
    return {
        "tensorrt_workspace_mib": int(workspace) // _MIB if workspace.isdecimal() else 0,
        "graph_level": optimization.graph.level,
        "input_pinned_memory": not optimization.HasField("input_pinned_memory"),
        "output_pinned_memory": not optimization.HasField("output_pinned_memory"),
        "eager_batching": optimization.eager_batching,
    }


def _warm_up(config: Any, signature: Signature, base: ModelSettings) -> dict[str, Any]:
    if not config.model_warmup:
        return {}
    first = config.model_warmup[0]
    if any(item.HasField("input_data_file") for item in first.inputs.values()):
        # Which requests they are is no part of the text.
        golden_ids = list(base.triton.warm_up.golden_ids)
        return {"data": "golden", "count": first.count, "golden_ids": golden_ids}
    sizes = [warm_up.batch_size for warm_up in config.model_warmup]
    is_random = any(item.random_data for item in first.inputs.values())
    return {
        "data": "random" if is_random else "zeros",
        "batch_sizes": sizes if signature.is_batched and sizes != [1] else [],
        "count": first.count,
        "shapes": _shapes(first.inputs, signature),
    }


def _shapes(inputs: Any, signature: Signature) -> list[str]:
    """List the stated shapes of the inputs whose dimensions are not those that the signature gives."""
    shapes = []
    for tensor in signature.inputs:
        if tensor.name not in inputs:
            continue
        dims = serving_dims(tensor, is_batched=signature.is_batched)
        stated = list(inputs[tensor.name].dims)
        if stated != ([max(dim, 1) for dim in dims] or [1]):
            shapes.append(f"{tensor.name}={'x'.join(map(str, stated))}")
    return shapes


def _versions(policy: Any) -> dict[str, Any]:
    choice = policy.WhichOneof("policy_choice")
    if choice == "specific":
        return {"version_policy": choice, "versions": list(policy.specific.versions)}
    if choice == "all":
        return {"version_policy": choice}
    latest = policy.latest.num_versions
    return {"versions": [latest] if latest != 1 else []}
