"""The time that pods of a version usually take to start, by engine, model cache and instance type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from deployments.models import Revision
from deployments.registry.selectors import served_revisions
from deployments.registry.selectors.served_revisions import ServedRevisions
from fleet.observation.domain.pod_start import STEPS
from fleet.observation.selectors import starts
from fleet.observation.selectors.starts import Start

_LAST: Final = 20
_Group = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class TypicalStart:
    """The medians of the last starts. Their steps need not add up to `seconds`."""

    engine: str
    model_cache: str
    instance_type: str
    starts: int
    seconds: int
    steps: Mapping[str, int]


def typical_starts(served: ServedRevisions) -> list[TypicalStart]:
    """Return the typical starts, the group with the newest start first."""
    revisions, times = served.revisions, served.times
    by_workload: dict[tuple[int, str, str], list[Revision]] = defaultdict(list)
    for revision in revisions:
        key = times[revision.pk].key
        by_workload[key.cluster_id, key.namespace, key.name].append(revision)
    grouped: dict[_Group, list[Start]] = defaultdict(list)
    for start in starts.list_starts(by_workload.keys()) if revisions else []:
        for revision in by_workload[start.workload]:
            if times[revision.pk].holds(start.created_at):
                engine, cache = _engine_and_cache(revision)
                grouped[engine, cache, start.instance_type].append(start)
    return [_typical_start(group, of_group[:_LAST]) for group, of_group in grouped.items()]


def typical_start_of(revision: Revision) -> TypicalStart | None:
    """Return the typical start of the revision's version, engine, cache and instance type. None before the
    first start.
    """
    group = (*_engine_and_cache(revision), revision.spec["instance_type"])
    for typical in typical_starts(served_revisions.read_served_revisions(revision.version)):
        if (typical.engine, typical.model_cache, typical.instance_type) == group:
            return typical
    return None


def _engine_and_cache(revision: Revision) -> tuple[str, str]:
    cache = (revision.spec.get("storage") or {}).get("model_cache", "none")
    return revision.spec["engine"], cache


def _typical_start(group: _Group, of_group: list[Start]) -> TypicalStart:
    engine, cache, instance_type = group
    return TypicalStart(
        engine=engine,
        model_cache=cache,
        instance_type=instance_type,
        starts=len(of_group),
        seconds=round(median(sum(start.seconds.values()) for start in of_group)),
        steps={
            step: round(median(start.seconds.get(step, 0) for start in of_group)) for step in STEPS
        },
    )
