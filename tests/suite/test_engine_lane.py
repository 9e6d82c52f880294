"""`make test-engines` says why it runs nothing, and leaves no half of an environment behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engines import __main__ as program
from tests.engines import build
from tests.engines.build import Build, Unavailable


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLIPWAY_ENGINES_CACHE", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10 * 2**30))
    return tmp_path


def _install_slowly(arguments: list[str], cache: Path, *, ends: float | None) -> None:
    """In place of uv: the environment is made, its packages are not."""
    if arguments[0] == "venv":
        Path(arguments[-1]).mkdir()
        return
    raise Unavailable("not in time")


def test_nothing_is_run_where_the_engine_cannot_be_installed(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "_run_uv", _install_slowly)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("is not run"))

    assert program.main() == 0
    assert "The tests on real engines are SKIPPED. not in time" in capsys.readouterr().out
    assert [path.name for path in cache.iterdir()] == ["vllm.lock"]


def test_a_full_disk_is_refused_before_a_download(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**30))

    with pytest.raises(Unavailable, match=r"has 1\.0 GiB free of 9"):
        build.build()


@pytest.mark.parametrize("status", [0, 1])
def test_an_exit_status_is_that_of_the_tests(
    cache: Path, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []

    def run(command: list[str], **options: Any) -> SimpleNamespace:
        ran.append((command[-1], options["env"]["SLIPWAY_TEST_VLLM"]))
        return SimpleNamespace(returncode=status)

    monkeypatch.setattr(build, "build", lambda: Build(cache / "vllm", 0.0))
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["tests.engines"])

    assert program.main() == status
    assert ran == [("tests/engines", str(cache / "vllm" / "bin" / "vllm"))]
