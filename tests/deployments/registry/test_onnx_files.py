from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.registry.domain import onnx
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.not_servable import NotServable
from tests.artifacts import MemoryArtifact
from tests.deployments import onnx_models


def written(folder: Path, body: bytes) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(body)
    return path


def test_signature_weights_and_parameters_are_read(tmp_path: Path) -> None:
    facts = onnx.read(written(tmp_path, onnx_models.linear()))

    assert [(t.name, t.dtype, t.dims) for t in facts.signature.inputs] == [("x", "FP32", (-1, 4))]
    assert (facts.weights_bytes, facts.parameter_count) == (32, 8)
    assert facts.signature.facts["opset"] == {"ai.onnx": 17}
    assert facts.custom_domains == ()


def test_operators_of_other_domains_are_named(tmp_path: Path) -> None:
    facts = onnx.read(written(tmp_path, onnx_models.linear(domain="acme.ops")))

    assert facts.custom_domains == ("acme.ops",)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (onnx_models.with_external_data(), "weights.bin"),
        (onnx_models.with_sequence_output(), "each input and output is one tensor"),
        (onnx_models.linear()[:40], "valid ONNX model"),
        (b"", "no graph"),
        (b"\x08\x07", "no graph"),
    ],
)
def test_what_cannot_be_served_says_why(tmp_path: Path, body: bytes, message: str) -> None:
    with pytest.raises(NotServable, match=message):
        onnx.read(written(tmp_path, body))


@settings(max_examples=50)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused_and_never_break_the_reader(
    tmp_path_factory: pytest.TempPathFactory, body: bytes
) -> None:
    path = written(tmp_path_factory.mktemp("any"), b"\x08\x07" + body)
    with contextlib.suppress(NotServable):
        onnx.read(path)


@pytest.mark.parametrize(
    ("head", "filename", "expected"),
    [
        (onnx_models.linear(), "model.onnx", "onnx"),
        (onnx_models.linear(), "renamed.txt", "onnx"),
        (b"PK\x03\x04....", "model.onnx", "zip"),
        (b"\x80\x04\x95", "model.onnx", "pickle"),
        (b"cos\nsystem\n", "old.pkl", "pickle"),
        (b"\x93NUMPY\x01", "a.npy", "numpy"),
        (b"\x89HDF\r\n\x1a\n", "a.h5", "hdf5"),
        (b'\x40\0\0\0\0\0\0\0{"a":{"dtype"', "a.safetensors", "safetensors"),
        (b"hello, this is a letter", "model.onnx", "unknown"),
        (b"", "model.onnx", "unknown"),
    ],
)
def test_the_content_decides_the_format(head: bytes, filename: str, expected: str) -> None:
    artifact = MemoryArtifact({filename: head}, {filename: len(head)})
    assert catalogue.detect(artifact).format.key == expected
