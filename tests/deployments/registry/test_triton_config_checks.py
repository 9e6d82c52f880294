"""Settings of config.pbtxt against a signature, and the known traps, each with its fix."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.registry.domain import triton_config
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.spec.domain.model_settings import ModelSettings
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.registry.triton_strategies import BATCHED

_IMAGE = Signature(
    (Tensor("image", "FP32", (-1, 3, -1, -1)),), (Tensor("class", "FP32", (-1, 10)),), 32
)
_SEQUENCE = {"is_dynamic": False}
_AGAINST_THE_SIGNATURE: list[tuple[dict[str, Any], str]] = [
    (
        {"sequence": {"start_input": "image"}},
        "image has dims [3, -1], and CONTROL_SEQUENCE_START is one value. Use an input with dims [1].",
    ),
    (
        {"sequence": {"end_input": "id"}},
        "id is UINT64; CONTROL_SEQUENCE_END needs INT32 or FP32 or BOOL. Use another input, or change "
        "the model.",
    ),
    (
        {"sequence": {"correlation_input": "end"}},
        "end is BOOL; CONTROL_SEQUENCE_CORRID needs UINT64 or INT64 or UINT32 or INT32 or STRING. Use "
        "another input, or change the model.",
    ),
    (
        {"sequence": {"ready_input": "ready"}},
        'The model has no input "ready" for CONTROL_SEQUENCE_READY. Use image, start, end, id, h_in.',
    ),
    (
        {"sequence": {"states": ["h_in=class"]}},
        "h_in and class differ in dtype or dims, so one cannot be the next of the other. Use tensors "
        "of the same dtype and dims.",
    ),
    (
        {"decoupled": True},
        "The backend onnxruntime answers each request exactly once. Turn decoupled off.",
    ),
    (
        {"parameters": ["chunk_size=2"]},
        "The backend onnxruntime has no parameter chunk_size. Its parameters: arena_extend_strategy, "
        "cudnn_conv_algo_search, cudnn_conv_use_max_workspace, do_copy_in_default_stream, "
        "enable_mem_arena, enable_mem_pattern, execution_mode, gpu_mem_limit, inter_op_thread_count, "
        "intra_op_thread_count, memory.enable_memory_arena_shrinkage.",
    ),
]


@pytest.mark.parametrize(("triton", "expected"), _AGAINST_THE_SIGNATURE)
def test_settings_are_checked_against_the_signature(triton: dict[str, Any], expected: str) -> None:
    settings = ModelSettings.from_json({"batching": _SEQUENCE, "triton": triton})

    problems = triton_config.problems_with(BATCHED, settings)

    assert [str(problem) for problem in problems] == [expected]


def test_warm_up_shapes_fit_the_inputs() -> None:
    def problems_with(*shapes: str) -> list[str]:
        settings = ModelSettings.from_json(
            {"warm_up": True, "triton": {"warm_up": {"shapes": list(shapes)}}}
        )
        return [problem.message for problem in triton_config.problems_with(_IMAGE, settings)]

    assert problems_with("image=3x640x640") == []
    assert problems_with("image=4x640x640") == [
        "The warm-up shape 4x640x640 of image does not fit its dims [3, -1, -1]."
    ]
    assert problems_with("imag=3x640x640") == ['The model has no input "imag".']


_WARNINGS: list[tuple[dict[str, Any], str]] = [
    (
        {"batching": {"preferred_batch_sizes": [4]}},
        "Preferred batch sizes help TensorRT plans only; others run smaller batches later. Leave them "
        "empty.",
    ),
    (
        {"batching": {"max_queue_delay_us": 500}, "triton": {"queue": {"timeout_us": 100}}},
        "A single request waits 500 µs for a batch and times out after 100 µs. Use a queue timeout above "
        "the queue delay.",
    ),
    (
        {"triton": {"instances": {"kind": "cpu"}}},
        "Instances run on the CPU, but the pod still holds its GPU. Use instances on the GPU.",
    ),
    (
        {"triton": {"instances": {"resources": ["slots=1"]}}},
        "A single instance does not share its resources, so the rate limiter changes nothing. Use "
        "several instances, or leave the rate limiter empty.",
    ),
    (
        {"warm_up": True},
        "The warm-up uses 1 for the dynamic dimensions of image, so real shapes are still slow the first "
        "time. Set the warm-up shapes, for example image=3x640x640.",
    ),
]


@pytest.mark.parametrize(("settings", "expected"), _WARNINGS)
def test_a_known_trap_is_named_with_its_fix(settings: dict[str, Any], expected: str) -> None:
    spec = ModelSettings.from_json(settings)

    assert triton_config.problems_with(_IMAGE, spec) == []
    assert [str(problem) for problem in triton_config.warnings_of(_IMAGE, spec)] == [expected]
    assert triton_config.warnings_of(_IMAGE, ModelSettings()) == []


def test_sequences_over_several_replicas_are_warned_about() -> None:
    spec = ServingSpec.from_json(
        {
            "engine": "triton",
            "instance_type": "g5.xlarge",
            "min_replicas": 2,
            "max_replicas": 2,
            "batching": {"is_dynamic": False},
            "triton": {"sequence": {}},
        }
    )

    assert [problem.message for problem in triton_config.warnings_of(BATCHED, spec)] == [
        "Requests of one sequence may reach different pods: no route keeps them together."
    ]
