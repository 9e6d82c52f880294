"""Sources that other apps register: places in queues, jobs that have no pods yet, and idle deployments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fleet.capacity.domain.waiting import QueuePlace, Waiter


@dataclass(frozen=True, slots=True)
class IdleDeployment:
    """A deployment without a request for so many days."""

    cluster_id: int
    team_slug: str
    name: str
    idle_days: int


# Its cluster, namespace and name.
WorkloadKey = tuple[int, str, str]


class WaitSource(Protocol):
    def find_places(self, workloads: Collection[WorkloadKey]) -> Mapping[WorkloadKey, QueuePlace]:
        """Return the places of those of these workloads whose pods wait in a queue."""

    def list_queued_jobs(self) -> Sequence[Waiter]:
        """List jobs that wait in a queue and have no pods yet. All of them are marked as visible."""

    def list_idle(self, clusters: Collection[int]) -> Sequence[IdleDeployment]:
        """List the deployments on these clusters that are idle for days."""


_sources: list[WaitSource] = []


def register(source: WaitSource) -> None:
    """Ask the source from now on. Registering twice has no effect."""
    if source not in _sources:
        _sources.append(source)


def find_places(workloads: Collection[WorkloadKey]) -> dict[WorkloadKey, QueuePlace]:
    places: dict[WorkloadKey, QueuePlace] = {}
    for source in _sources if workloads else ():
        places.update(source.find_places(workloads))
    return places


def list_queued_jobs() -> list[Waiter]:
    return [waiter for source in _sources for waiter in source.list_queued_jobs()]


def list_idle(clusters: Collection[int]) -> list[IdleDeployment]:
    return [one for source in _sources if clusters for one in source.list_idle(clusters)]
