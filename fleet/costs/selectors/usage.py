"""Utilisation and request counts of groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fleet.costs.domain.results import OTHERS, GroupBy, GroupKey
from fleet.telemetry.domain.counters import source_label
from fleet.telemetry.selectors import readings
from fleet.telemetry.selectors.readings import ReadingSum

_IDLE: Final = GroupKey(is_idle=True)
_LABELS: Final[Mapping[GroupBy, tuple[str, ...]]] = {
    GroupBy.MODEL: ("model",),
    GroupBy.DEPLOYMENT: ("deployment",),
    GroupBy.REVISION: ("deployment", "revision"),
}


@dataclass(frozen=True, slots=True)
class GroupUsage:
    """The usage of a group, as sums over the observed time. `utilisation` is None if no time was observed."""

    inferences: int
    # Of language models: those of prompts and generated ones together.
    tokens: int
    requests: int
    failures: int
    observed_ms: int
    utilisation: float | None
    source: str
    energy_mj: int | None = None
    energy_ms: int = 0


def by_group(
    *,
    start: datetime,
    end: datetime,
    group_by: GroupBy,
    team_slugs: Collection[str] | None = None,
    keys: Collection[GroupKey] | None = None,
) -> dict[GroupKey, GroupUsage]:
    """Return the usage by group. With `keys`, limited to these groups and few others."""
    if group_by in (GroupBy.TEAM, GroupBy.CLUSTER):
        sums = readings.sum_by_team(start=start, end=end, team_slugs=team_slugs)
    else:
        sums = readings.sum_by_workload(
            start=start,
            end=end,
            team_slugs=team_slugs if keys is None else sorted({key.team_slug for key in keys}),
            labels=grouping_labels(group_by),
            models=_all_named(key.model for key in keys or ()),
            deployments=_all_named(key.deployment for key in keys or ()),
        )
    groups: dict[GroupKey, list[ReadingSum]] = defaultdict(list)
    for one in sums:
        values = [one.team_slug, *one.labels]
        if group_by is GroupBy.CLUSTER:
            values = [one.cluster_name]
        groups[build_key(group_by, values, is_idle=False)].append(one)
    return {key: _sum_up(of_group) for key, of_group in groups.items()}


def _all_named(names: Iterable[str]) -> list[str]:
    """Return the distinct names, sorted. Empty, which does not filter, if one of them is empty."""
    unique = set(names)
    return [] if "" in unique else sorted(unique)


def build_key(group_by: GroupBy | None, values: Sequence[Any], *, is_idle: bool) -> GroupKey:
    """Return the group key of a grouping's columns: the cluster, or the team and its labels. `group_by` None puts
    all that is not idle into one group.
    """
    if group_by is None:
        return _IDLE if is_idle else OTHERS
    if group_by is GroupBy.CLUSTER:
        return GroupKey(cluster_name=values[0], is_idle=is_idle)
    if is_idle:
        return _IDLE
    team_slug, *labels = (str(value or "") for value in values)
    if group_by is GroupBy.TEAM:
        return GroupKey(team_slug)
    if group_by is GroupBy.MODEL:
        return GroupKey(team_slug, labels[0])
    return GroupKey(team_slug, "", labels[0], labels[1] if len(labels) > 1 else "")


def grouping_labels(group_by: GroupBy | None) -> tuple[str, ...]:
    """Return the workload labels of a grouping, besides the team."""
    return _LABELS.get(group_by, ()) if group_by else ()


def _sum_up(sums: list[ReadingSum]) -> GroupUsage:
    observed = sum(one.observed_ms for one in sums)
    busy = sum(one.busy_ms for one in sums)
    energy = [one.energy_mj for one in sums if one.energy_mj is not None]
    sources = sorted({one.source for one in sums if one.source})
    return GroupUsage(
        inferences=sum(one.inferences for one in sums),
        tokens=sum(one.tokens for one in sums),
        requests=sum(one.requests for one in sums),
        failures=sum(one.failures for one in sums),
        observed_ms=observed,
        utilisation=min(1.0, busy / observed) if observed else None,
        source=" and ".join(source_label(source) for source in sources),
        energy_mj=sum(energy) if energy else None,
        energy_ms=sum(one.energy_ms for one in sums),
    )
