"""A pod with a `digest-check` starts only with the recorded files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from slipway_localcluster.controllers import conditions, model_repository, storage
from slipway_localcluster.controllers.pod_runner import PodRunner
from slipway_localcluster.controllers.storage import S3Settings

_FILES = {"one/1/model.onnx": b"weights", "one/config.pbtxt": b'backend: "onnxruntime"\n'}
_MOUNT = {"name": "models", "mountPath": "/mnt/models"}


class _Synchronous(ThreadPoolExecutor):
    """Work is done when `submit` returns."""

    def submit(self, *args: Any, **options: Any) -> Any:
        future = super().submit(*args, **options)
        future.exception()
        return future


@pytest.fixture
def workers() -> Iterator[_Synchronous]:
    with _Synchronous(1) as pool:
        yield pool


def _pod(record: str) -> dict[str, Any]:
    check = {
        "name": "digest-check",
        "env": [
            {"name": "SLIPWAY_MODELS", "value": "/mnt/models"},
            {"name": "SLIPWAY_DIGESTS", "value": record},
        ],
        "volumeMounts": [{**_MOUNT, "readOnly": True}],
    }
    download = {
        "name": "storage-initializer",
        "args": ["s3://models/one/", "/mnt/models"],
        "volumeMounts": [_MOUNT],
    }
    return {"spec": {"initContainers": [download, check], "containers": []}}


def _record() -> str:
    return "".join(
        f"{hashlib.sha256(body).hexdigest()}  {path}\n" for path, body in sorted(_FILES.items())
    )


def _serve(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> None:
    def download(uri: str, target: Path, settings: S3Settings) -> int:
        for path, body in files.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(body)
        return len(files)

    monkeypatch.setattr(storage, "download", download)


def _runner(pod: dict[str, Any], directory: Path, workers: _Synchronous) -> PodRunner:
    return PodRunner(  # nothing to start
        pod,
        directory,
        None,  # type: ignore[arg-type]
        address="10.244.0.1",
        downloads=workers,
        probes=workers,
    )


def _step(runner: PodRunner, pod: dict[str, Any], count: int = 6) -> dict[str, Any]:
    for _ in range(count):
        runner.step(S3Settings)
    status: dict[str, Any] = runner.status(pod)
    return status


def _is_initialized(status: dict[str, Any]) -> bool:
    return conditions.is_true({"status": status}, "Initialized")


def test_recorded_files_are_prepared_for_triton_after_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: _Synchronous
) -> None:
    _serve(monkeypatch, _FILES)
    pod = _pod(_record())

    status = _step(_runner(pod, tmp_path / "pod", workers), pod)

    assert _is_initialized(status)
    ends = [item["state"]["terminated"] for item in status["initContainerStatuses"]]
    assert [end["exitCode"] for end in ends] == [0, 0]
    config = (tmp_path / "pod/volumes/models/one/config.pbtxt").read_text()
    assert 'backend: "python"' in config


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"one/1/model.onnx": b"others"}, "one/1/model.onnx: FAILED"),
        ({"one/1/model.py": b"import os"}, "one/1/model.py: not in the record"),
    ],
)
def test_a_changed_file_blocks_the_start_and_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: _Synchronous,
    changed: dict[str, bytes],
    message: str,
) -> None:
    _serve(monkeypatch, {**_FILES, **changed})
    pod = _pod(_record())
    runner = _runner(pod, tmp_path / "pod", workers)

    first = _step(runner, pod, 3)["initContainerStatuses"][1]["state"]["terminated"]
    assert (first["exitCode"], first["reason"], first["message"]) == (1, "Error", message)

    status = _step(runner, pod, 20)
    assert not _is_initialized(status)
    assert status["phase"] == "Pending"
    check = status["initContainerStatuses"][1]
    assert check["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert check["lastState"]["terminated"]["message"] == message
    assert (tmp_path / "pod/digest-check.log").read_text() == f"{message}\n"


def test_files_are_not_compared_again_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: _Synchronous
) -> None:
    """Preparing the files changes them, so a second comparison would fail."""
    _serve(monkeypatch, _FILES)
    pod = _pod(_record())
    real = model_repository.prepare

    def prepare_and_die(repository: Path) -> None:
        real(repository)
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(model_repository, "prepare", prepare_and_die)
        assert not _is_initialized(_step(_runner(pod, tmp_path / "pod", workers), pod, 4))

    assert _is_initialized(_step(_runner(pod, tmp_path / "pod", workers), pod))
