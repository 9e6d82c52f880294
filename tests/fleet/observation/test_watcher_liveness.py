"""The chart's probe of the watcher: its file is renewed while all its threads live, and only then."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command

from fleet.management.commands import watch_clusters
from fleet.observation.services import watch
from fleet.observation.services.watcher import Watcher
from tests.fleet.observation.test_watching import cluster
from tests.waiting import wait_for

__all__ = ["cluster"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def watcher(cluster: Any) -> Iterator[Watcher]:
    made = Watcher()
    made.refresh()
    yield made
    made.stop()


def test_it_is_well_while_its_threads_live(watcher: Watcher) -> None:
    assert watcher.is_well()


def _thread_that_fails(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A fault that nobody foresaw."""

    def fail(*args: Any) -> None:
        raise RuntimeError(name)

    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    monkeypatch.setattr(watch.ClusterWatch, name, fail)


@pytest.mark.parametrize("name", ["_next_batch", "_stream"])
def test_it_is_not_once_a_thread_has_ended(
    name: str, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _thread_that_fails(monkeypatch, name)
    broken = Watcher()
    broken.refresh()

    wait_for("the thread to end", lambda: not broken.is_well())
    broken.stop()


@pytest.mark.parametrize("is_broken", [False, True])
def test_the_command_renews_the_file(
    is_broken: bool, cluster: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alive, rounds = tmp_path / "alive", iter(range(3))

    class Stopping:
        def set(self) -> None: ...

        def wait(self, seconds: float) -> bool:
            return next(rounds, None) is None

    monkeypatch.setenv("SLIPWAY_WORKER_ALIVE_FILE", str(alive))
    silent = SimpleNamespace(SIGTERM=1, SIGINT=2, signal=lambda *_: None)
    monkeypatch.setattr(f"{watch_clusters.__name__}.threading", SimpleNamespace(Event=Stopping))
    monkeypatch.setattr(f"{watch_clusters.__name__}.signal", silent)
    monkeypatch.setattr(watch_clusters, "Watcher", lambda: _Kept(is_well=not is_broken))

    call_command("watch_clusters")

    assert alive.exists() is not is_broken


class _Kept:
    def __init__(self, *, is_well: bool) -> None:
        self._is_well = is_well

    def is_well(self) -> bool:
        return self._is_well

    def refresh(self) -> None: ...

    def stop(self) -> None: ...
