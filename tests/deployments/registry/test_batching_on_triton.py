"""Models that take batches and models that only seem to, uploaded, verified, and served by the
real Triton: sixteen requests at a time are answered as each one alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
import tritonclient.http as triton_http
from onnx import TensorProto

from deployments.models import ModelVersion
from deployments.registry.domain import triton_config
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.registry.services.examination import onnx_examination, use_examination
from deployments.registry.services.examination.checklist import Checklist
from deployments.states import VersionState
from portal.core import leases
from tests.deployments import real_triton
from tests.deployments.uploading import Upload
from tests.fixtures import batching_models, large_models
from tests.fixtures.batching_models import BatchingModel

pytestmark = [pytest.mark.django_db]

AT_ONCE = 16
# Six times so many: a batch that mixes answers up mixes up each.
REQUESTS = 6 * AT_ONCE
_LARGE = BatchingModel("large", batching_models.mlp, (1, 8), supports_batching=True)
# Batched as every model with a dynamic first dimension once was: its answers must be wrong.
_GUESSED = BatchingModel(
    "guessed", batching_models.softmax_over_axis_0, (2, 6), supports_batching=False
)


@dataclass(frozen=True)
class Served:
    """One model on Triton, and alone in ONNX Runtime."""

    port: int
    model: BatchingModel
    path: Path
    dims: Sequence[int]

    def infer(self, number: int) -> dict[str, Any]:
        """A client for each request: the library's own are not to be shared by threads."""
        value = self.model.request(number).reshape(self.dims)
        client = triton_http.InferenceServerClient(f"127.0.0.1:{self.port}")
        try:
            answer = client.infer(self.model.name, [_input(value, self.model.dtype)])
            outputs = [item["name"] for item in answer.get_response()["outputs"]]
            return {name: answer.as_numpy(name) for name in outputs}
        finally:
            client.close()

    def wrong_answers(self) -> int:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(self.path), options)
        alone = [_run(session, self.model, number) for number in range(REQUESTS)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(self.infer, range(REQUESTS)))
        return sum(
            not _are_alike(answer, expected)
            for answer, expected in zip(answers, alone, strict=True)
        )


def _input(value: Any, dtype: int) -> Any:
    kind = TensorProto.DataType.Name(dtype)
    name = {"FLOAT": "FP32", "FLOAT16": "FP16", "BFLOAT16": "BF16", "STRING": "BYTES"}.get(
        kind, kind
    )
    if dtype == TensorProto.BFLOAT16:
        value = value.view(ml_dtypes.bfloat16)
    given = triton_http.InferInput("x", value.shape, name)
    given.set_data_from_numpy(value)
    return given


def _run(session: Any, model: BatchingModel, number: int) -> dict[str, Any]:
    names = [output.name for output in session.get_outputs()]
    value = model.request(number)
    if model.dtype != TensorProto.BFLOAT16:
        return dict(zip(names, session.run(names, {"x": value}), strict=True))
    bits = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(value, model.dtype)
    outputs = session.run_with_ort_values(names, {"x": bits})
    arrays = [np.from_dlpack(_AsBits(output)).view(ml_dtypes.bfloat16) for output in outputs]
    return dict(zip(names, arrays, strict=True))


class _AsBits:
    """NumPy takes no bfloat16, but its bits."""

    def __init__(self, value: Any) -> None:
        count = int(np.prod(value.shape()))
        pointer = ctypes.cast(value.data_ptr(), ctypes.POINTER(ctypes.c_uint16))
        self._array = np.ctypeslib.as_array(pointer, (count,)).copy().reshape(value.shape())

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def _are_alike(answer: dict[str, Any], expected: dict[str, Any]) -> bool:
    return set(answer) == set(expected) and all(
        _is_alike(answer[name], np.asarray(expected[name])) for name in expected
    )


def _is_alike(answer: Any, expected: Any) -> bool:
    """To the last bits of the type: a batch adds up in another order. Text and numbers exactly."""
    if expected.dtype.kind in "OUSib":
        texts = [
            element.decode() if isinstance(element, bytes) else element
            for element in answer.ravel()
        ]
        return texts == list(expected.ravel())
    steps = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[str(expected.dtype)]
    return bool(
        np.allclose(
            answer.ravel().astype(np.float64),
            expected.ravel().astype(np.float64),
            rtol=steps,
            atol=steps * max(1.0, float(np.max(np.abs(expected.astype(np.float64))))),
        )
    )


@pytest.fixture
def served(
    verified: Upload, upload: Upload, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Served]]:
    """One Triton with all of them, each configured as its verification wrote it."""
    pytest.importorskip("pytriton")
    root = tmp_path_factory.mktemp("triton")
    for model in batching_models.SERVED:
        version = verified(model.bytes(), model=model.name)
        assert version.state == VersionState.READY, (model.name, version.state_reason)
        _lay_out(root / "models", model, version.config_pbtxt).write_bytes(model.bytes())
    _lay_out(root / "models", _GUESSED, _guess()).write_bytes(_GUESSED.bytes())
    large = large_models.write_large(root / "large.onnx", mebibytes=600)
    config = _config_of_large(large, upload)
    large.rename(_lay_out(root / "models", _LARGE, config))
    child, port = real_triton.start(root)
    yield {
        model.name: Served(port, model, root / "originals" / model.name, model.shape or (1,))
        for model in _with_originals(root)
    }
    child.kill()


def _with_originals(root: Path) -> list[BatchingModel]:
    """The files as ONNX Runtime alone reads them."""
    (root / "originals").mkdir()
    models = [*batching_models.SERVED, _LARGE, _GUESSED]
    for model in models:
        (root / "originals" / model.name).symlink_to(root / "models" / model.name / "1/model.onnx")
    return models


def _lay_out(models: Path, model: BatchingModel, config: str) -> Path:
    path = models / model.name / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    (models / model.name / "config.pbtxt").write_text(config)
    return path


def _guess() -> str:
    signature = Signature(
        inputs=(Tensor("x", "FP32", (-1, 6)),),
        outputs=(Tensor("y", "FP32", (-1, 3)),),
        max_batch_size=32,
    )
    config = triton_config.render(model=_GUESSED.name, signature=signature)
    # Requests meet in a batch on a busy machine too.
    waiting = config.replace(
        "dynamic_batching { }", "dynamic_batching { max_queue_delay_microseconds: 50000 }"
    )
    assert waiting != config
    return waiting


def _config_of_large(path: Path, upload: Upload) -> str:
    """Examined as it lies on disk: sending 600 MB through the store would only take time."""
    row = upload(batching_models.mlp().SerializeToString(), model="large")
    lease = leases.claim(ModelVersion, row.pk, seconds=600)
    assert lease is not None
    checklist = Checklist(row.pk, lease)
    facts = onnx_examination.read(row, path, checklist)
    assert onnx_examination.load(row, path, facts, checklist) == ""
    use = use_examination.examine(row, path, facts, checklist, can_run=True)
    assert use.signature.max_batch_size == 32, checklist.steps
    assert use.estimate.weights_mib == 601
    return triton_config.render(model="large", signature=use.signature)


def test_sixteen_requests_at_a_time_are_answered_as_each_one_alone(
    served: dict[str, Served],
) -> None:
    versions = {row.model.name: row for row in ModelVersion.objects.select_related("model")}
    batched = {name for name, row in versions.items() if row.signature.get("max_batch_size", 0) > 0}
    expected = {model.name for model in batching_models.SERVED if model.supports_batching}

    wrong = {name: one.wrong_answers() for name, one in served.items()}
    guessed = wrong.pop(_GUESSED.name)

    assert batched == expected
    assert guessed > 0
    assert wrong == dict.fromkeys([*(m.name for m in batching_models.SERVED), "large"], 0)


@pytest.mark.parametrize("name", sorted(batching_models.REFUSED))
def test_outputs_that_are_no_tensors_are_refused(verified: Upload, name: str) -> None:
    version = verified(batching_models.REFUSED[name]().SerializeToString(), model=name)

    assert version.state == VersionState.FAILED
    assert "Triton serves tensors only" in version.state_reason
