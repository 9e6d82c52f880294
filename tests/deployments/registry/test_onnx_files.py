from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.domain import formats, onnx_files, sizing
from deployments.domain.formats import ModelFormat
from deployments.domain.onnx_files import NotServable
from tests.deployments.registry import onnx_models


def written(folder: Path, body: bytes) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(body)
    return path


def test_signature_weights_and_parameters_are_read(tmp_path: Path) -> None:
    facts = onnx_files.read(written(tmp_path, onnx_models.linear()))

    assert [(t.name, t.dtype, t.dims) for t in facts.signature.inputs] == [("x", "FP32", (-1, 4))]
    assert (facts.weights_bytes, facts.parameter_count) == (32, 8)
    assert facts.signature.facts["opset"] == {"ai.onnx": 17}
    assert facts.custom_domains == ()


def test_operators_of_other_domains_are_named(tmp_path: Path) -> None:
    facts = onnx_files.read(written(tmp_path, onnx_models.linear(domain="acme.ops")))

    assert facts.custom_domains == ("acme.ops",)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (onnx_models.with_external_data(), "weights.bin"),
        (onnx_models.with_sequence_output(), "zipmap"),
        (onnx_models.linear()[:40], "no ONNX model"),
        (b"", "no graph"),
        (b"\x08\x07", "no graph"),
    ],
)
def test_what_cannot_be_served_says_why(tmp_path: Path, body: bytes, words: str) -> None:
    with pytest.raises(NotServable, match=words):
        onnx_files.read(written(tmp_path, body))


@settings(max_examples=50)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused_and_never_break_the_reader(
    tmp_path_factory: pytest.TempPathFactory, body: bytes
) -> None:
    path = written(tmp_path_factory.mktemp("any"), b"\x08\x07" + body)
    with contextlib.suppress(NotServable):
        onnx_files.read(path)


@pytest.mark.parametrize(
    ("head", "filename", "expected"),
    [
        (onnx_models.linear(), "model.onnx", ModelFormat.ONNX),
        (onnx_models.linear(), "renamed.txt", ModelFormat.ONNX),
        (b"PK\x03\x04....", "model.onnx", ModelFormat.PYTORCH),
        (b"\x80\x04\x95", "model.onnx", ModelFormat.PICKLE),
        (b"cos\nsystem\n", "old.pkl", ModelFormat.PICKLE),
        (b"\x93NUMPY\x01", "a.npy", ModelFormat.NUMPY),
        (b"\x89HDF\r\n\x1a\n", "a.h5", ModelFormat.HDF5),
        (b'\x10\0\0\0\0\0\0\0{"a":1}', "a.safetensors", ModelFormat.SAFETENSORS),
        (b"hello, this is a letter", "model.onnx", ModelFormat.UNKNOWN),
        (b"", "model.onnx", ModelFormat.UNKNOWN),
    ],
)
def test_the_content_decides_the_format(head: bytes, filename: str, expected: ModelFormat) -> None:
    assert formats.detect(head, filename) == expected


def test_the_estimate_is_weights_plus_activations_per_batch_plus_runtime() -> None:
    mib = 2**20

    estimate = sizing.estimate_vram(
        weights_bytes=100 * mib, largest_tensor_bytes=2 * mib, io_bytes=mib, max_batch_size=32
    )

    assert (estimate.weights_mib, estimate.activations_mib) == (100, 128)
    assert estimate.total_mib == 688
