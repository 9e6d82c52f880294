"""What hostile and broken files come to: never ready unless the runtime loads them, never stuck."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import time_machine
from django.core.exceptions import ValidationError
from django.db import OperationalError
from onnx import TensorProto

from deployments import tasks
from deployments.models import ModelVersion
from deployments.registry.domain import onnx, onnx_loading
from deployments.registry.domain.not_servable import NotServable
from deployments.registry.services import verification
from deployments.registry.services.examination import version_examination
from deployments.registry.services.examination.version_examination import ExaminationResult
from deployments.states import VersionState
from portal.core import clock
from tests.deployments import onnx_models
from tests.deployments.uploading import Upload
from tests.fixtures import hostile_files, hostile_graphs

pytestmark = pytest.mark.django_db


def loaded(folder: Path, body: bytes) -> dict[str, Any]:
    """As the sandbox does it, in this process: only for files that do not block."""
    path = folder / "model.onnx"
    path.write_bytes(body)
    onnx.read(path)
    return onnx_loading.load({"path": str(path)})


# Built when its test runs: some are large, and a test would be named after the bytes.
REFUSED: Final[tuple[tuple[Callable[[], bytes], str], ...]] = (
    (lambda: hostile_graphs.nested_functions(30), "more than 1,000,000 nodes"),
    (lambda: hostile_graphs.nested_functions(400, calls=1), "more than 100 levels deep"),
    (hostile_graphs.recursive_function, "call themselves"),
    (lambda: hostile_graphs.external_data("../../../etc/passwd"), "“../../../etc/passwd”"),
    (hostile_graphs.external_data_in_a_function, "“weights.bin”"),
    (hostile_graphs.external_data_in_a_sparse_tensor, "“weights.bin”"),
    (lambda: hostile_graphs.with_dims([-5, 4]), "“x” has a dimension of -5"),
    (lambda: hostile_graphs.with_dims([0, 4]), "“x” has a dimension of 0"),
    (lambda: hostile_graphs.with_dims([2**62]), "4,611,686,018,427,387,904"),
    (lambda: hostile_graphs.with_input_name(""), "An input is named “”"),
    (lambda: hostile_graphs.with_input_name("a\0b"), "An input is named “a�b”"),
    (lambda: hostile_graphs.with_input_name("x" * 5000), "1 to 1,000 printable"),
    (lambda: hostile_graphs.with_type(99), "number 99"),
    (lambda: hostile_graphs.with_type(TensorProto.COMPLEX64), "COMPLEX64"),
    (hostile_graphs.cycle, "the graph is not acyclic"),
    (hostile_graphs.duplicate_inputs, "more than one input “x”"),
    (hostile_graphs.duplicate_outputs, "more than one output “y”"),
    (hostile_graphs.weights_without_bytes, "ONNX Runtime"),
    (hostile_graphs.weights_of_wrong_length, "ONNX Runtime"),
    (lambda: hostile_graphs.many_inputs(50_001), "50,002 inputs and outputs"),
    (hostile_graphs.names_that_are_not_utf8, "not valid UTF-8"),
    (hostile_graphs.unknown_operator, "No Op registered for NoSuchThing"),
)


@pytest.mark.parametrize(("build", "cause"), [pytest.param(*case, id=case[1]) for case in REFUSED])
def test_a_model_that_cannot_be_served_is_refused_with_the_cause(
    tmp_path: Path, build: Callable[[], bytes], cause: str
) -> None:
    with pytest.raises(NotServable) as refusal:
        loaded(tmp_path, build())

    assert cause in str(refusal.value)
    assert "/onnxruntime_src" not in str(refusal.value)
    assert str(tmp_path) not in str(refusal.value)


def test_functions_that_a_runtime_writes_out_in_no_time_are_served(tmp_path: Path) -> None:
    assert loaded(tmp_path, hostile_graphs.nested_functions(3))["inputs"] == ["x"]


def test_the_2_kb_file_with_nested_functions_fails_at_once(verified: Upload) -> None:
    body = hostile_graphs.nested_functions(30)
    assert len(body) < 2500

    version = verified(body)

    assert version.state == VersionState.FAILED
    assert "more than 1,000,000 nodes" in version.state_reason
    assert version.examination_deaths == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (hostile_graphs.custom_operator_in_a_function(), "operators of acme"),
        (hostile_graphs.with_type(TensorProto.BFLOAT16), "no processor kernel"),
    ],
)
def test_what_the_runtime_here_cannot_show_is_quarantined(
    verified: Upload, body: bytes, message: str
) -> None:
    version = verified(body)

    assert version.state == VersionState.QUARANTINED
    assert message in version.state_reason
    assert {row["name"]: row["ok"] for row in version.checks}["Runtime"] is False
    assert version.repository_prefix


@pytest.mark.parametrize(
    ("filename", "body", "message"),
    [
        ("model.onnx", hostile_graphs.cycle(), "not acyclic"),
        ("model.onnx", hostile_graphs.with_input_name("a\0b"), "printable"),
        ("model.onnx", hostile_graphs.with_type(99), "number 99"),
        ("model.onnx", hostile_graphs.with_dims([2**31 - 1] * 8), "more than 16 TiB"),
        ("model.zip", b"7z\xbc\xaf\x27\x1c" + bytes(40), "a 7z archive"),
    ],
)
def test_a_broken_file_fails_with_its_cause(
    verified: Upload, filename: str, body: bytes, message: str
) -> None:
    version = verified(body, filename=filename)

    assert version.state == VersionState.FAILED
    assert message in version.state_reason
    assert len(ModelVersion.objects.filter(state=VersionState.VERIFYING)) == 0


@pytest.mark.parametrize("protocol", [0, 4])
def test_a_pickle_is_never_executed(verified: Upload, tmp_path: Path, protocol: int) -> None:
    import pickle

    marker = tmp_path / "executed"
    body = pickle.dumps(hostile_files.Writes(marker), protocol=protocol)

    version = verified(body, filename="model.pkl")

    assert version.state == VersionState.QUARANTINED
    assert "exec" in version.state_reason
    assert not marker.exists()


def raising(error: Exception) -> Callable[..., ExaminationResult]:
    """Fails for the first version only, then does what it always does."""
    real, calls = version_examination.examine, io.StringIO()

    def examine(*args: Any) -> ExaminationResult:
        if not calls.getvalue():
            calls.write("failed")
            raise error
        return real(*args)

    return examine


@pytest.mark.parametrize(
    "error",
    [
        ValidationError("no such choice"),
        OverflowError("int too large to convert"),
        ModuleNotFoundError("No module named 'py7zr'"),
        ValueError("a\0b"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_examining_raises_fails_that_version_only(
    upload: Upload,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    """People read what to do; the text of the exception is for the log."""
    first, second = upload(onnx_models.linear()), upload(onnx_models.linear(scale=2))
    monkeypatch.setattr(version_examination, "examine", raising(error))

    tasks.sweep_versions()

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, second.state) == (VersionState.FAILED, VersionState.READY)
    assert first.state_reason == "The file could not be read. Export the model again."
    (logged,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert logged.exc_info is not None
    assert logged.exc_info[1] is error


@pytest.mark.parametrize("error", [OSError("No space left"), OperationalError("gone away")])
def test_a_transient_error_is_retried(
    upload: Upload, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    version = upload(onnx_models.linear())
    monkeypatch.setattr(version_examination, "examine", raising(error))

    with_suppressed(verification.advance, version.pk)
    version.refresh_from_db()
    assert version.state == VersionState.VERIFYING

    with time_machine.travel(clock.now() + timedelta(seconds=10)):
        tasks.sweep_versions()
    version.refresh_from_db()
    assert version.state == VersionState.READY


def with_suppressed(call: Callable[[int], None], pk: int) -> None:
    try:
        call(pk)
    except OperationalError:
        return


@pytest.mark.django_db(transaction=True)
def test_what_the_database_refuses_fails_that_version_only(
    upload: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = upload(onnx_models.linear())
    findings = ExaminationResult(columns={"signature": {"inputs": "a\0b"}})
    monkeypatch.setattr(version_examination, "examine", lambda *args: findings)

    verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.FAILED
    assert version.state_reason == "The file could not be read. Export the model again."


def test_the_second_death_of_the_reader_fails_the_version(
    upload: Upload, settings: Any, s3_store: object
) -> None:
    settings.SLIPWAY_EXAMINATION_CPU_SECONDS = 1
    version = upload(hostile_graphs.nested_branches(12))

    verification.advance(version.pk)
    version.refresh_from_db()
    assert (version.state, version.examination_deaths) == (VersionState.VERIFYING, 1)
    (step,) = (row for row in version.checks if "retrying once" in row["detail"])
    assert step["ok"] is None

    with time_machine.travel(clock.now() + timedelta(seconds=10)):
        verification.advance(version.pk)
    version.refresh_from_db()
    assert version.state == VersionState.FAILED
    # On a busy machine the wall time may be up before the processor time is.
    assert "Reading the file failed twice: it " in version.state_reason


def test_the_runtime_is_part_of_the_product() -> None:
    """The production image installs these alone."""
    root = Path(__file__).parents[3]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]

    names = {line.split("~")[0] for line in project["dependencies"]}
    assert {"onnx", "onnxruntime", "picklescan"} <= names


def test_deaths_of_the_worker_count_too(upload: Upload) -> None:
    version = upload(onnx_models.linear())
    ModelVersion.objects.filter(pk=version.pk).update(examination_deaths=2)

    verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.FAILED
    assert "the worker that read the file was killed" in version.state_reason
