"""How often controllers run: at once after a change, twice a second for a while, and then every other second."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, cast

from slipway_localcluster.controllers.reconcile import run_until


@dataclass
class Cluster:
    """Objects change at `changes`; time passes only while somebody waits."""

    changes: list[float]
    ends_at: float
    stopping: threading.Event = field(default_factory=threading.Event)
    at: float = 0.0
    revision: int = 0
    passes: list[float] = field(default_factory=list)

    def wait(self, revision: int, timeout: float) -> int:
        assert revision == self.revision
        if self.changes and self.changes[0] <= self.at + timeout:
            self.at = self.changes.pop(0)
            self.revision += 1
        else:
            self.at += timeout
        if self.at >= self.ends_at:
            self.stopping.set()
        return self.revision

    def run(self) -> list[float]:
        """When the controllers ran."""
        run_until(
            self.stopping, cast("Any", self), [lambda: self.passes.append(self.at)], lambda: self.at
        )
        return self.passes


def test_passes_come_soon_after_a_change_and_seldom_when_nothing_changes() -> None:
    passes = Cluster(changes=[], ends_at=25).run()

    assert passes == [step / 2 for step in range(30)] + [16.5, 18.5, 20.5, 22.5, 24.5]


def test_a_change_in_a_calm_time_is_met_at_once() -> None:
    passes = Cluster(changes=[30.25], ends_at=32).run()

    assert passes[-5:] == [28.5, 30.25, 30.75, 31.25, 31.75]


def test_it_stops_within_a_short_wait() -> None:
    cluster = Cluster(changes=[], ends_at=19.5)
    cluster.run()

    assert cluster.at == 19.5
