"""The demo's real model: the file classifier that the magika wheel ships."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from deployments.states import VersionState
from tests.deployments.uploading import Upload

pytestmark = pytest.mark.django_db


def test_the_file_classifier_is_read_as_its_makers_describe_it(verified: Upload) -> None:
    spec = importlib.util.find_spec("magika")
    if spec is None or spec.origin is None:
        pytest.skip("the magika wheel comes with the demo's dependencies")
    path = Path(spec.origin).parent / "models" / "standard_v3_3" / "model.onnx"

    version = verified(path.read_bytes(), model="file-classifier", filename="model.onnx")

    assert version.state == VersionState.READY, version.state_reason
    assert version.signature["inputs"] == [{"name": "bytes", "dtype": "INT32", "dims": [-1, 2048]}]
    assert version.signature["outputs"] == [
        {"name": "target_label", "dtype": "FP32", "dims": [-1, 214]}
    ]
    assert version.signature["max_batch_size"] == 32
    assert 'name: "bytes" data_type: TYPE_INT32 dims: [2048]' in version.config_pbtxt
