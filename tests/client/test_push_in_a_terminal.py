"""`slipway push` as a process of its own, against a listening portal: killed, interrupted, resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from deployments.models import ModelVersion
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import verification
from portal.accounts import tokens
from tests.client.pushing import stored_bytes
from tests.deployments import onnx_models
from tests.deployments.uploading import People
from tests.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def terminal(people: People, live_server: LiveServer, tmp_path: Path) -> dict[str, str]:
    """The environment of the commands: the client alone, with the member's token."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT / "client" / "src"),
        "SLIPWAY_URL": live_server.url,
        "SLIPWAY_TOKEN": tokens.create(
            actor=people.member, name="terminal", scopes=["upload"]
        ).plain,
    }


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "detector.onnx"
    path.write_bytes(onnx_models.large(megabytes=20))
    return path


def start(terminal: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "slipway_client", *arguments]
    # A test run in the background ignores Ctrl-C, and so would its children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            command, env=terminal, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def third_part(s3_store: S3Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Set when the portal is to sign a third part; it then answers once the test goes on."""
    reached, go_on = threading.Event(), threading.Event()
    presign = S3Store.presign_part

    def wait_at_the_third(*arguments: Any, **fields: Any) -> Any:
        if arguments[3] == 3 and not go_on.is_set():
            reached.set()
            go_on.wait(60)
        return presign(*arguments, **fields)

    monkeypatch.setattr(S3Store, "presign_part", wait_at_the_third)
    reached.go_on = go_on  # type: ignore[attr-defined]  # belongs to it
    yield reached
    go_on.set()


@pytest.mark.parametrize(
    ("how", "code"),
    [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)],
    ids=["kill", "ctrl-c"],
)
def test_a_push_that_is_ended_in_the_middle_is_resumed(
    how: signal.Signals,
    code: int,
    terminal: dict[str, str],
    model: Path,
    s3_store: S3Store,
    third_part: Any,
) -> None:
    first = start(terminal, "push", str(model), "vision/detector", "--parallel", "1")
    assert third_part.wait(60)
    first.send_signal(how)
    _, errors = first.communicate(timeout=PATIENCE_SECONDS)
    third_part.go_on.set()
    again = start(terminal, "push", str(model), "vision/detector", "--no-wait")
    _, resumed = again.communicate(timeout=PATIENCE_SECONDS)

    assert first.returncode == code
    if how == signal.SIGINT:
        assert f"Resume with: slipway push {model} vision/detector" in errors.replace("\n", " ")
    assert again.returncode == 0, resumed
    assert "Resuming vision/detector:1." in resumed
    version = ModelVersion.objects.get()
    assert version.state == "verifying"
    assert stored_bytes(s3_store, version, "detector.onnx") == model.read_bytes()


def test_a_push_shows_its_checks_and_what_comes_next(
    terminal: dict[str, str], model: Path, s3_store: S3Store
) -> None:
    sent = start(terminal, "push", str(model), "vision/detector", "--no-wait", "--json")
    out, errors = sent.communicate(timeout=PATIENCE_SECONDS)
    assert sent.returncode == 0, errors
    assert '"state": "verifying"' in out
    verification.advance(ModelVersion.objects.get().pk)

    again = start(terminal, "push", str(model), "vision/detector")
    out, errors = again.communicate(timeout=PATIENCE_SECONDS)

    assert again.returncode == 0, errors
    assert "These exact files are vision/detector:1 (ready). Nothing was sent." in errors
    assert "vision/detector:1 is ready." in out
    assert "Deploy it: slipway deploy vision/detector:1" in out
    assert terminal["SLIPWAY_TOKEN"] not in out + errors
