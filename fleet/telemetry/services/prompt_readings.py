"""Workloads whose pods are read at each poll, because something waits for their figures."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fleet.telemetry.selectors.current import WorkloadKey

Source = Callable[[Collection[int]], Collection[WorkloadKey]]
_sources: list[Source] = []


def register(source: Source) -> None:
    """Register a source: `source(cluster_ids)` names workloads of these clusters. Registering it twice has no
    effect.
    """
    if source not in _sources:
        _sources.append(source)


def list_workloads(cluster_ids: Collection[int]) -> frozenset[WorkloadKey]:
    return frozenset(key for source in _sources for key in source(cluster_ids))
