"""Where each field of Triton's settings arrives, as rows of settings_in_manifests.ARRIVES."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ARGS = "InferenceService.spec.predictor.model.args"
_SEQUENCE = {"batching_is_dynamic": "off", "triton_sequence": "on"}
_OLDEST = {**_SEQUENCE, "triton_sequence_strategy": "oldest"}
_LEVELS = {"triton_queue_priority_levels": "2", "triton_queue_default_priority_level": "1"}
_WARM = {"warm_up": "on"}
# What is typed, and what config.pbtxt then says.
_IN_CONFIG: list[tuple[str, Mapping[str, str], str, str]] = [
    ("batching_preserve_ordering", {}, "on", "preserve_ordering: true"),
    ("batching_max_batch_size", {}, "8", "max_batch_size: 8"),
    ("triton_queue_max_size", {}, "64", "default_queue_policy { max_queue_size: 64 }"),
    ("triton_queue_timeout_us", {}, "5000", "default_timeout_microseconds: 5000"),
    ("triton_queue_timeout_action", {}, "delay", "timeout_action: DELAY"),
    ("triton_queue_allow_timeout_override", {}, "on", "allow_timeout_override: true"),
    (
        "triton_queue_priority_levels",
        {"triton_queue_default_priority_level": "2"},
        "3",
        "priority_levels: 3 default_priority_level: 2",
    ),
    (
        "triton_queue_default_priority_level",
        {"triton_queue_priority_levels": "3"},
        "3",
        "priority_levels: 3 default_priority_level: 3",
    ),
    (
        "triton_queue_priority_max_sizes",
        _LEVELS,
        "7, 9",
        "priority_queue_policy { key: 2 value { max_queue_size: 9 } }",
    ),
    (
        "triton_queue_priority_timeouts_us",
        _LEVELS,
        "100, 200",
        "priority_queue_policy { key: 1 value { default_timeout_microseconds: 100 } }",
    ),
    ("triton_sequence", _SEQUENCE, "on", "sequence_batching {"),
    ("triton_sequence_strategy", _SEQUENCE, "oldest", "oldest { max_candidate_sequences: 16 }"),
    ("triton_sequence_max_idle_us", _SEQUENCE, "77", "max_sequence_idle_microseconds: 77"),
    (
        "triton_sequence_max_queue_delay_us",
        _SEQUENCE,
        "88",
        "direct { max_queue_delay_microseconds: 88 }",
    ),
    (
        "triton_sequence_minimum_slot_utilization_percent",
        _SEQUENCE,
        "50",
        "direct { minimum_slot_utilization: 0.5 }",
    ),
    ("triton_sequence_max_candidate_sequences", _OLDEST, "4", "max_candidate_sequences: 4"),
    ("triton_sequence_preferred_batch_sizes", _OLDEST, "8, 4", "preferred_batch_size: [4, 8]"),
    (
        "triton_sequence_start_input",
        _SEQUENCE,
        "x",
        'name: "x" control { fp32_false_true: [0.0, 1.0] }',
    ),
    ("triton_sequence_ready_input", _SEQUENCE, "x", "kind: CONTROL_SEQUENCE_READY"),
    ("triton_sequence_end_input", _SEQUENCE, "x", "kind: CONTROL_SEQUENCE_END"),
    (
        "triton_sequence_correlation_input",
        _SEQUENCE,
        "id",
        "control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }",
    ),
    (
        "triton_sequence_states",
        _SEQUENCE,
        "x=y",
        'state { input_name: "x" output_name: "y" data_type: TYPE_FP32 dims: [2] initial_state {',
    ),
    ("triton_instances_kind", {}, "cpu", "instance_group { kind: KIND_CPU count: 1 }"),
    ("triton_instances_gpus", {}, "0", "count: 1 gpus: [0]"),
    ("triton_instances_priority", {}, "2", "rate_limiter { priority: 2 }"),
    (
        "triton_instances_resources",
        {},
        "slots=2",
        'resources { name: "slots" count: 2 }',
    ),
    (
        "triton_instances_global_resources",
        {},
        "slots=2",
        'resources { name: "slots" global: true count: 2 }',
    ),
    ("triton_warm_up_data", _WARM, "random", "random_data: true"),
    (
        "triton_warm_up_golden_ids",
        {**_WARM, "triton_warm_up_data": "golden"},
        "7",
        'input_data_file: "golden"',
    ),
    ("triton_warm_up_batch_sizes", _WARM, "1, 16", 'name: "batch-16" batch_size: 16'),
    ("triton_warm_up_count", _WARM, "3", "count: 3"),
    ("triton_warm_up_shapes", _WARM, "x=2", "dims: [2] zero_data: true"),
    (
        "triton_optimization_tensorrt_workspace_mib",
        {"precision": "fp16"},
        "2",
        'key: "max_workspace_size_bytes" value: "2097152"',
    ),
    ("triton_optimization_graph_level", {}, "1", "optimization { graph { level: 1 } }"),
    ("triton_optimization_input_pinned_memory", {}, "off", "input_pinned_memory { }"),
    ("triton_optimization_output_pinned_memory", {}, "off", "output_pinned_memory { }"),
    ("triton_optimization_eager_batching", {}, "on", "eager_batching: true"),
    ("triton_decoupled", {}, "on", "model_transaction_policy { decoupled: true }"),
    (
        "triton_version_policy",
        {"triton_versions": "1"},
        "specific",
        "version_policy { specific { versions: [1] } }",
    ),
    ("triton_versions", {}, "2", "version_policy { latest { num_versions: 2 } }"),
    (
        "triton_parameters",
        {},
        "intra_op_thread_count=2",
        'parameters { key: "intra_op_thread_count" value { string_value: "2" } }',
    ),
    ("triton_metric_tags", {}, "tier=gold", 'metric_tags { key: "tier" value: "gold" }'),
]
ARRIVES: list[tuple[str, Mapping[str, str], str, Any]] = [
    *((name, {**others, name: typed}, "config", text) for name, others, typed, text in _IN_CONFIG),
    (
        "triton_response_cache_mib",
        {"triton_response_cache_mib": "64"},
        "config",
        "response_cache { enable: true }",
    ),
    # The server's own switches: without them Triton ignores what config.pbtxt says.
    (
        "triton_response_cache_mib",
        {"triton_response_cache_mib": "64"},
        _ARGS,
        "--cache-config=local,size=67108864",
    ),
    (
        "triton_instances_resources",
        {"triton_instances_resources": "slots=2"},
        _ARGS,
        "--rate-limit=execution_count",
    ),
]
