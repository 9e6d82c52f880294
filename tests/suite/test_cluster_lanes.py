"""`make test-cluster` is green only when something was proven, or nothing could be."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import __main__ as program
from tests.cluster import build, custom_kinds, go_toolchain, report
from tests.cluster.build import Artifact, Build
from tests.cluster.go_toolchain import Go, NotInTime, Unavailable

_ALL, _SMALLER = "all", "smaller"


class Machine:
    """What a machine can build, and what was run there."""

    def __init__(self, **answers: Exception | None) -> None:
        self.answers = answers
        self.ran: list[str] = []
        self.built: list[str] = []

    def build_all(
        self, artifacts: Sequence[Artifact], *, optional: Any = (), least_minutes: float = 0.0
    ) -> list[Build]:
        name = _SMALLER if artifacts[0] is custom_kinds.SERVER else _ALL
        self.built.append(name)
        error = self.answers[name]
        if error is not None:
            raise error
        return [Build(artifact, Path("/none"), 1.0) for artifact in artifacts]

    def run_all(self, *_: object) -> int:
        self.ran.append(_ALL)
        return 0

    def run_smaller(self, *_: object) -> int:
        self.ran.append(_SMALLER)
        return 0


_Case = tuple[Exception | None, Exception | None, int, list[str]]
_CASES: dict[str, _Case] = {
    "everything is built": (None, None, 0, [_ALL]),
    "no modules": (Unavailable("no proxy"), Unavailable("no proxy"), 0, []),
    "Kubernetes is not built in time": (None, NotInTime("slow"), 0, [_SMALLER]),
    "nothing is built in time": (NotInTime("slow"), NotInTime("slow"), 1, []),
    "the proxy went away meanwhile": (None, Unavailable("gone"), 0, []),
}


@pytest.fixture
def arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tests.cluster"])


def _install(machine: Machine, monkeypatch: pytest.MonkeyPatch, *, is_cached: bool) -> None:
    monkeypatch.setattr(build, "build_all", machine.build_all)
    monkeypatch.setattr(build, "cached", lambda artifact: object() if is_cached else None)
    monkeypatch.setattr(program, "_run_all", machine.run_all)
    monkeypatch.setattr(custom_kinds, "running", lambda *_: nullcontext(_STORE))
    monkeypatch.setattr(program, "_pytest", machine.run_smaller)
    monkeypatch.setattr(report, "describe_alone", lambda *_: "")


_STORE = custom_kinds.Store("https://none", Path("/none"), Path("/none"))


@pytest.mark.usefixtures("arguments")
@pytest.mark.parametrize("name", _CASES)
def test_an_exit_status_says_what_was_proven(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    smaller, everything, status, ran = _CASES[name]
    machine = Machine(smaller=smaller, all=everything)
    _install(machine, monkeypatch, is_cached=False)

    assert program.main() == status
    assert machine.ran == ran


@pytest.mark.usefixtures("arguments")
def test_the_smaller_one_is_built_first_and_only_where_it_may_be_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for is_cached, built in ((False, [_SMALLER, _ALL]), (True, [_ALL])):
        machine = Machine(smaller=None, all=None)
        _install(machine, monkeypatch, is_cached=is_cached)
        program.main()
        assert machine.built == built


def test_named_tests_that_need_kubernetes_fail_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tests.cluster", "tests/cluster/test_chart.py"])
    machine = Machine(smaller=None, all=NotInTime("slow"))
    _install(machine, monkeypatch, is_cached=False)

    assert program.main() == 1
    assert machine.ran == []


def test_a_build_that_takes_too_long_is_not_an_absent_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With a `go` that never ends, in place of the real one."""
    slow = tmp_path / "go"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("SLIPWAY_CLUSTER_CACHE", str(tmp_path))
    monkeypatch.setenv("SLIPWAY_CLUSTER_BUILD_MINUTES", "0.001")
    monkeypatch.setattr(go_toolchain, "find", lambda cache: Go(slow, "1.26"))
    monkeypatch.setattr(go_toolchain, "require_modules", lambda go: None)

    with pytest.raises(NotInTime, match="control-plane was not built within"):
        build.build_all((build.CONTROL_PLANE,))
