"""config.pbtxt to settings and back: nothing is lost, and what is refused has its place and its fix."""

from __future__ import annotations

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2

from deployments.registry.domain import triton_config
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.registry.domain.triton_config import ConfigProblem
from deployments.registry.domain.triton_config.text import places
from deployments.spec.domain.model_settings import ModelSettings
from tests.deployments.registry.triton_strategies import BATCHED, model_settings

_SINGLE = Signature((Tensor("x", "FP32", (2,)),), (Tensor("y", "FP32", (2,)),))
_IMAGE = Signature(
    (Tensor("image", "FP32", (-1, 3, -1, -1)),), (Tensor("class", "FP32", (-1, 10)),), 32
)


def read(text: str, signature: Signature = _IMAGE) -> triton_config.ConfigReading:
    return triton_config.read(text, model="m", signature=signature)


@given(model_settings())
def test_settings_become_a_text_and_the_text_becomes_the_same_settings(
    settings: ModelSettings,
) -> None:
    text = triton_config.render(model="m", signature=BATCHED, spec=settings)

    reading = read(text, BATCHED)

    assert (reading.settings, reading.rest, reading.problems) == (settings, "", ())


@given(model_settings())
def test_the_text_is_what_tritons_own_schema_reads(settings: ModelSettings) -> None:
    config = triton_config.build(model="m", signature=BATCHED, spec=settings)

    text = triton_config.write(config)

    assert text.isascii()
    parsed = text_format.Parse(text, model_config_pb2.ModelConfig())
    assert parsed == config
    assert [group.kind for group in parsed.instance_group] != [0]
    places(text)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
def test_any_text_is_read_or_refused_with_a_message(text: str) -> None:
    reading = read(text)

    assert reading.settings is not None or reading.blocking[0].message


# Protobuf takes an unknown escape as it stands, and Python warns of it.
@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
@given(model_settings(), st.data())
def test_a_damaged_text_is_read_or_refused_with_a_message(
    settings: ModelSettings, data: st.DataObject
) -> None:
    text = triton_config.render(model="m", signature=BATCHED, spec=settings)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 20, len(text))))

    reading = read(text[:start] + data.draw(st.text(max_size=3)) + text[end:], BATCHED)

    assert reading.settings is not None or reading.blocking[0].message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'name: "m"\nmax_batchsize: 8',
            'Line 2, column 1: There is no "max_batchsize" in ModelConfig. Did you mean "max_batch_size"?',
        ),
        (
            "dynamic_batching {\n  queue_delay: 3\n}",
            'Line 2, column 3: There is no "queue_delay" in ModelDynamicBatching. Remove it.',
        ),
        (
            "instance_group [ { kind: KIND_GPUS } ]",
            'Line 1, column 26: There is no "KIND_GPUS" of Kind. Did you mean "KIND_GPU"?',
        ),
        (
            "input [\n  { nme: 'x' }\n]",
            'Line 2, column 5: There is no "nme" in ModelInput. Did you mean "name"?',
        ),
        (
            "dynamic_batching { }\nsequence_batching { }",
            'Line 2, column 1: Field "sequence_batching" is specified along with field '
            '"dynamic_batching", another member of oneof "scheduling_choice" for message type '
            '"inference.ModelConfig".',
        ),
        ("max_batch_size: 99999999999", "Line 1, column 17: Value out of range: 99999999999."),
        ("dynamic_batching {", 'Line 1, column 18: Expected "}".'),
    ],
)
def test_what_is_no_config_is_refused_with_line_column_and_nearest_name(
    text: str, expected: str
) -> None:
    reading = read(text)

    assert reading.settings is None
    assert [str(problem) for problem in reading.problems] == [expected]


_TRAPS = [
    (
        'max_batch_size: 8\ninput [ { name: "image" data_type: TYPE_FP32\n dims: [ -1, 3, 640, 640 ] } ]',
        "Line 3, column 2: The dims of image include the batch dimension, which Triton adds because "
        "max_batch_size is 8. Use dims: [3, -1, -1].",
    ),
    (
        'max_batch_size: 8\ninput [ { name: "image" data_type: TYPE_UINT8 dims: [ 3, -1, -1 ] } ]',
        "Line 2, column 25: image is TYPE_FP32 in the model's file. Use TYPE_FP32.",
    ),
    (
        'max_batch_size: 8\noutput { name: "clas" data_type: TYPE_FP32 dims: [ 10 ] }',
        'Line 2, column 1: The model has no output "clas". Use the outputs of the version: class.',
    ),
    (
        "max_batch_size: 64",
        "Line 1, column 1: The version takes batches up to 32. Use at most 32, or declare another "
        "size on the version's page.",
    ),
    (
        "max_batch_size: 8\ninstance_group [ { kind: KIND_GPU }, { kind: KIND_CPU } ]",
        "Line 2, column 38: All GPUs of a pod have the same instances. Use one instance_group, with "
        "count for each GPU and the indices in gpus.",
    ),
    (
        'max_batch_size: 8\nparameters { key: "EXECUTION_ENV_PATH" value { string_value: "/x" } }',
        "Line 2, column 1: EXECUTION_ENV_PATH is not a parameter that only tunes the backend. Use one of "
        "arena_extend_strategy, cudnn_conv_algo_search, cudnn_conv_use_max_workspace, "
        "do_copy_in_default_stream, enable_mem_arena, enable_mem_pattern, execution_mode, "
        "gpu_mem_limit, inter_op_thread_count, intra_op_thread_count, "
        "memory.enable_memory_arena_shrinkage.",
    ),
    (
        "max_batch_size: 8\noptimization { cuda {\n graphs: true } }",
        "Line 3, column 2: optimization.cuda.graphs: A deployment has no setting for it. Remove it.",
    ),
    (
        'max_batch_size: 8\nmodel_operations { op_library_filename: "evil.so" }',
        "Line 2, column 20: model_operations.op_library_filename: It loads a library into the server. "
        "Remove it.",
    ),
    (
        "max_batch_size: 8\ndynamic_batching { priority_levels: 2 default_priority_level: 3 }",
        "Line 2, column 39: Default priority: Use 1 to 2.",
    ),
    (
        "max_batch_size: 8\ninstance_group { kind: KIND_GPU count: 99 }",
        "Line 2, column 33: Instances per GPU: Use 1 to 16 instances. Each loads its own copy of the "
        "model into GPU memory.",
    ),
]


@pytest.mark.parametrize(("text", "expected"), _TRAPS)
def test_what_the_model_or_a_deployment_cannot_have_is_refused_at_its_place(
    text: str, expected: str
) -> None:
    reading = read(text)

    assert reading.settings is None
    assert [str(problem) for problem in reading.blocking] == [expected]


def test_batching_of_a_model_without_batches_is_refused() -> None:
    reading = read("dynamic_batching { max_queue_delay_microseconds: 5 }", _SINGLE)

    assert [str(problem) for problem in reading.blocking] == [
        "Line 1, column 1: The model does not support batching: max_batch_size is 0. Remove "
        "dynamic_batching, or declare batching on the version's page."
    ]


def test_what_no_setting_states_is_kept_as_the_rest() -> None:
    text = "max_batch_size: 16\noptimization { cuda { graphs: true } graph { level: 1 } }\n"

    reading = read(text)

    assert reading.rest == "optimization { cuda { graphs: true } }\n"
    assert read(text.replace("cuda { graphs: true }", "")).settings.triton.optimization == (
        ModelSettings.from_json(
            {"triton": {"optimization": {"graph_level": 1}}}
        ).triton.optimization
    )


def test_a_group_without_a_kind_gets_kind_gpu_and_says_so() -> None:
    reading = read("max_batch_size: 32\ninstance_group { count: 2 }")

    assert [problem.message for problem in reading.problems] == [
        "instance_group states no kind: Triton would fall back to the CPU without a GPU."
    ]
    text = triton_config.render(model="m", signature=_IMAGE, spec=reading.settings)
    assert "instance_group { kind: KIND_GPU count: 2 }\n" in text


def test_the_older_spelling_of_upstreams_examples_means_the_same() -> None:
    text = """
        name: "resnet50"            # of somebody else's repository
        platform: "onnxruntime_onnx"
        max_batch_size : 8
        input [ { name: "image" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, 224 ] } ]
        output [ { name: "class" data_type: TYPE_FP32 dims: [ 10 ] } ]
        instance_group [ { count: 1 kind: KIND_GPU gpus: [ 0 ] } ]
        dynamic_batching { preferred_batch_size: [ 8, 4 ] max_queue_delay_microseconds: 100 }
        default_model_filename: "model.onnx"
    """

    reading = read(text)

    assert [problem.message for problem in reading.problems] == [
        'The name is "m" here: Triton takes the name of the directory.',
        "The model takes dims [3, -1, -1] for image; these are used.",
    ]
    assert reading.settings == ModelSettings.from_json(
        {
            "batching": {
                "max_queue_delay_us": 100,
                "preferred_batch_sizes": [4, 8],
                "max_batch_size": 8,
            },
            "triton": {"instances": {"gpus": [0]}},
        }
    )


def test_without_a_signature_the_text_is_its_own() -> None:
    text = triton_config.render(model="m", signature=_IMAGE)

    reading = triton_config.read(text)

    assert reading.settings == ModelSettings()
    assert (reading.signature.inputs, reading.signature.outputs) == (_IMAGE.inputs, _IMAGE.outputs)
    assert reading.signature.max_batch_size == 32


def test_a_text_of_any_length_is_refused_soon() -> None:
    reading = read("#" * 100_001)

    assert reading.problems == (ConfigProblem("The text has more than 100,000 characters."),)
