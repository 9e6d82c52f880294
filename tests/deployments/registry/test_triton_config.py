from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.registry.domain import triton_config
from deployments.registry.domain.signatures import (
    BYTES_OF_DTYPE,
    DEFAULT_MAX_BATCH,
    Signature,
    Tensor,
    detect_max_batch_size,
    from_json,
)

DIMS = st.lists(st.sampled_from([-1, 1, 3, 224]), max_size=4).map(tuple)
TENSORS = st.lists(
    st.builds(
        Tensor, name=st.text(max_size=8), dtype=st.sampled_from(sorted(BYTES_OF_DTYPE)), dims=DIMS
    ),
    min_size=1,
    max_size=3,
).map(tuple)


def test_the_text_of_a_batched_model_is_exactly_this() -> None:
    signature = Signature(
        inputs=(Tensor("image", "FP32", (-1, 3, -1, 640)),),
        outputs=(Tensor("boxes", "FP32", (-1, 4)), Tensor("count", "INT64", (-1,))),
        max_batch_size=32,
    )

    assert triton_config.render(model="detector", signature=signature) == (
        'name: "detector"\n'
        'backend: "onnxruntime"\n'
        "version_policy { latest { num_versions: 1 } }\n"
        "max_batch_size: 32\n"
        'input { name: "image" data_type: TYPE_FP32 dims: [3, -1, 640] }\n'
        'output { name: "boxes" data_type: TYPE_FP32 dims: [4] }\n'
        'output { name: "count" data_type: TYPE_INT64 dims: [1] reshape { } }\n'
        "dynamic_batching { }\n"
        "instance_group { kind: KIND_GPU count: 1 }\n"
    )


def test_a_lone_number_of_a_model_without_batches_is_plain_and_never_reshaped() -> None:
    """Triton: "cannot have empty reshape for non-batching model as scalar tensors are not
    supported".
    """
    signature = Signature(
        inputs=(Tensor("audio", "FP32", (1, -1)), Tensor("rate", "INT64", ())),
        outputs=(Tensor("speech", "FP32", ()),),
    )

    text = triton_config.render(model="vad", signature=signature)

    assert "reshape" not in text
    assert '{ name: "rate" data_type: TYPE_INT64 dims: [1] }\n' in text
    assert '{ name: "speech" data_type: TYPE_FP32 dims: [1] }\n' in text


@given(TENSORS, TENSORS)
def test_same_signature_same_text_and_dims_follow_the_batch(
    inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
) -> None:
    signature = Signature(inputs, outputs, detect_max_batch_size(inputs, outputs))

    text = triton_config.render(model="m", signature=signature)

    assert text == triton_config.render(model="m", signature=from_json(signature.to_json()))
    assert ("dynamic_batching" in text) == signature.is_batched
    assert text.isascii()
    assert text.count("dims: [") == len(inputs) + len(outputs)
    assert "dims: []" not in text


def test_a_quote_in_a_name_cannot_end_the_string() -> None:
    evil = Tensor('x" } ] backend: "python', "FP32", (1,))

    text = triton_config.render(model="m", signature=Signature((evil,), (evil,)))

    assert text.count("\nbackend: ") == 1
    assert 'x\\" } ] backend: \\"python' in text


def tensor(*symbols: str) -> Tensor:
    dims = tuple(-1 if not s.isdigit() else int(s) for s in symbols)
    return Tensor("t", "FP32", dims, tuple("" if s.isdigit() else s for s in symbols))


def test_a_batch_needs_a_free_first_dimension_everywhere_under_one_name() -> None:
    def max_batch_of(inputs: list[Tensor], outputs: list[Tensor]) -> int:
        return detect_max_batch_size(inputs, outputs)

    assert max_batch_of([tensor("batch", "4")], [tensor("batch", "2")]) == DEFAULT_MAX_BATCH
    assert max_batch_of([tensor("unk__1", "4")], [tensor("unk__2", "2")]) == DEFAULT_MAX_BATCH
    assert max_batch_of([tensor("1", "4")], [tensor("batch", "2")]) == 0
    assert max_batch_of([tensor("boxes", "4"), tensor("images", "3")], [tensor("n", "2")]) == 0
    assert max_batch_of([tensor("length", "4")], [tensor("length", "length")]) == 0
    assert max_batch_of([tensor("batch")], [Tensor("scalar", "FP32", ())]) == 0
    assert max_batch_of([], [tensor("batch")]) == 0


@given(TENSORS, TENSORS)
def test_triton_s_own_schema_reads_the_text_back(
    inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
) -> None:
    model_config_pb2 = pytest.importorskip("tritonclient.grpc.model_config_pb2")
    text_format = pytest.importorskip("google.protobuf.text_format")
    signature = Signature(inputs, outputs, detect_max_batch_size(inputs, outputs))

    text = triton_config.render(model="m", signature=signature)
    config = text_format.Parse(text, model_config_pb2.ModelConfig())

    assert [item.name for item in config.input] == [tensor.name for tensor in inputs]
    assert [item.name for item in config.output] == [tensor.name for tensor in outputs]
    for item, tensor in zip(config.input, inputs, strict=True):
        dims = triton_config.serving_dims(tensor, is_batched=signature.is_batched)
        assert list(item.dims) == (list(dims) or [1])
        assert item.HasField("reshape") == (signature.is_batched and not dims)
