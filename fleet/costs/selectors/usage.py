"""Utilisation and request counts of workloads, from the hourly rollups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Max, Sum

from fleet.costs.domain.results import GroupBy, GroupKey
from fleet.models import WorkloadHour
from fleet.telemetry.domain.counters import source_label


@dataclass(frozen=True, slots=True)
class GroupUsage:
    """Sums over the observed time; `utilisation` None when no time was observed."""

    inferences: int
    # Of language models: those of prompts and generated ones together.
    tokens: int
    requests: int
    failures: int
    observed_ms: int
    utilisation: float | None
    source: str


def by_group(
    *,
    start: datetime,
    end: datetime,
    group_by: GroupBy,
    team_slugs: Collection[str] | None = None,
) -> dict[GroupKey, GroupUsage]:
    rows = WorkloadHour.objects.filter(start__gte=start, start__lt=end)
    if team_slugs is not None:
        rows = rows.filter(workload__team__slug__in=team_slugs)
    sums = (
        rows.values(
            "workload",
            team_slug=F("workload__team__slug"),
            cluster_name=F("workload__cluster__name"),
            labels=F("workload__labels"),
        )
        .annotate(
            inferences=Sum("inference_count"),
            tokens=Sum("prompt_tokens") + Sum("generation_tokens"),
            requests=Sum("request_success"),
            failures=Sum("request_failure"),
            observed=Sum("observed_ms"),
            busy=Sum("gpu_busy_ms"),
            source=Max("gpu_busy_source"),
        )
        .order_by()
    )
    groups: dict[GroupKey, list[dict[str, Any]]] = defaultdict(list)
    for row in sums:
        key = key_for(
            group_by,
            team_slug=row["team_slug"],
            labels=row["labels"],
            cluster_name=row["cluster_name"],
        )
        groups[key].append(dict(row))
    return {key: _sum_up(rows_of_group) for key, rows_of_group in groups.items()}


def key_for(
    group_by: GroupBy,
    *,
    team_slug: str,
    labels: Mapping[str, Any],
    cluster_name: str,
    is_idle: bool = False,
) -> GroupKey:
    if group_by is GroupBy.CLUSTER:
        return GroupKey(cluster_name=cluster_name, is_idle=is_idle)
    if is_idle:
        return GroupKey(is_idle=True)
    label_names = grouping_labels(group_by)
    return GroupKey(
        team_slug=team_slug,
        model=str(labels.get("model") or "") if "model" in label_names else "",
        deployment=str(labels.get("deployment") or "") if "deployment" in label_names else "",
        revision=str(labels.get("revision") or "") if "revision" in label_names else "",
    )


def grouping_labels(group_by: GroupBy) -> tuple[str, ...]:
    """The workload labels of a grouping, besides the team."""
    return {
        GroupBy.MODEL: ("model",),
        GroupBy.DEPLOYMENT: ("deployment",),
        GroupBy.REVISION: ("deployment", "revision"),
    }.get(group_by, ())


def _sum_up(rows: list[dict[str, Any]]) -> GroupUsage:
    observed = sum(row["observed"] for row in rows)
    busy = sum(row["busy"] for row in rows)
    sources = sorted({row["source"] for row in rows if row["source"]})
    return GroupUsage(
        inferences=sum(row["inferences"] for row in rows),
        tokens=sum(row["tokens"] for row in rows),
        requests=sum(row["requests"] for row in rows),
        failures=sum(row["failures"] for row in rows),
        observed_ms=observed,
        utilisation=min(1.0, busy / observed) if observed else None,
        source=" and ".join(source_label(source) for source in sources),
    )
