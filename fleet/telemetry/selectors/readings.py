"""Sums of readings over a period: days that were summed up from their roll-up, all others from hours."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import F, Max, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform

from fleet.models import SummedDay, TeamUsageDay, WorkloadDay, WorkloadHour

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ReadingSum:
    """`labels` of the workloads in the requested order; empty where the sum is of a team. `cluster_name`
    is empty where it is not.
    """

    team_slug: str
    cluster_name: str
    inferences: int
    tokens: int
    requests: int
    failures: int
    observed_ms: int
    busy_ms: int
    source: str
    # Millijoules, and the GPU time that they were measured in; None: not known.
    energy_mj: int | None
    energy_ms: int
    labels: Sequence[str | None] = ()


def of_teams(
    *, start: datetime, end: datetime, team_slugs: Collection[str] | None
) -> Iterator[ReadingSum]:
    """By team and cluster; one may come several times."""
    days, spans = _cut(start, end)
    hours = WorkloadHour.objects.filter(_within(spans))
    rows = TeamUsageDay.objects.filter(_of_days(days))
    if team_slugs is not None:
        hours = hours.filter(workload__team__slug__in=team_slugs)
        rows = rows.filter(team_slug__in=team_slugs)
    if days:
        yield from _team_sums(rows, "team_slug", "cluster_name", F("tokens"))
    if spans:
        names = ("workload__team__slug", "workload__cluster__name")
        yield from _team_sums(hours, *names, F("prompt_tokens") + F("generation_tokens"))


def of_workloads(
    *,
    start: datetime,
    end: datetime,
    team_slugs: Collection[str] | None,
    labels: Sequence[str] = (),
    models: Collection[str] = (),
    deployments: Collection[str] = (),
) -> Iterator[ReadingSum]:
    """By team and these labels of the workload; one may come several times. With models or deployments:
    of the workloads that serve them.
    """
    days, spans = _cut(start, end)
    # SQLite cannot look for text among values: KT(…)__in is no JSON there.
    filters: dict[str, Any] = {
        "workload__team__slug__in": team_slugs,
        "workload__labels__model__in": list(models) or None,
        "workload__labels__deployment__in": list(deployments) or None,
    }
    wanted = {name: values for name, values in filters.items() if values is not None}
    sources: list[tuple[QuerySet[Any], Any]] = []
    if days:
        sources.append((WorkloadDay.objects.filter(_of_days(days), **wanted), F("tokens")))
    if spans:
        hours = WorkloadHour.objects.filter(_within(spans), **wanted)
        sources.append((hours, F("prompt_tokens") + F("generation_tokens")))
    for rows, tokens in sources:
        texts = {f"label_{name}": KeyTextTransform(name, "workload__labels") for name in labels}
        # By source, because a group has all of those that its workloads had.
        names = ["workload__team__slug", *texts, "gpu_busy_source"]
        for team_slug, *values in _summed(rows.annotate(**texts), names, tokens):
            of_labels, sums = values[: len(labels)], values[len(labels) + 1 :]
            row: tuple[Any, ...] = (team_slug, "", *sums, of_labels)
            yield ReadingSum(*row)


def _team_sums(rows: QuerySet[Any], team: str, cluster: str, tokens: Any) -> Iterator[ReadingSum]:
    for values in _summed(rows, [team, cluster], tokens):
        yield ReadingSum(*values)


def _summed(rows: QuerySet[Any], names: list[str], tokens: Any) -> Iterator[Any]:
    sums: QuerySet[Any, Any] = (
        rows.values_list(*names)
        .annotate(
            _inferences=Sum("inference_count"),
            _tokens=Sum(tokens),
            _requests=Sum("request_success"),
            _failures=Sum("request_failure"),
            _observed=Sum("observed_ms"),
            _busy=Sum("gpu_busy_ms"),
            _source=Max("gpu_busy_source"),
            _energy=Sum("energy_mj"),
            _measured=Sum("energy_ms"),
        )
        .order_by()
    )
    return iter(sums)


def _cut(start: datetime, end: datetime) -> tuple[list[date], list[tuple[datetime, datetime]]]:
    """Days that were summed up, whole or so far, and what is left of the period."""
    kept = SummedDay.objects.filter(day__gte=start.date(), day__lte=end.date())
    days: list[date] = []
    spans: list[tuple[datetime, datetime]] = []
    at = start
    for day, until in kept.values_list("day", "until").order_by("day"):
        first, last = _midnight(day), until or _midnight(day) + _DAY
        if first < start or last > end:
            continue
        if at < first:
            spans.append((at, first))
        days.append(day)
        at = last
    if at < end:
        spans.append((at, end))
    return days, spans


def _of_days(days: list[date]) -> Q:
    """As ranges: by a list of days PostgreSQL reads all days of a workload."""
    ranges: list[tuple[date, date]] = []
    for day in days:
        if ranges and ranges[-1][1] + _DAY == day:
            ranges[-1] = (ranges[-1][0], day)
        else:
            ranges.append((day, day))
    within = Q()
    for first, last in ranges:
        within |= Q(day__gte=first, day__lte=last)
    return within


def _within(spans: list[tuple[datetime, datetime]]) -> Q:
    within = Q(pk__in=[]) if not spans else Q()
    for start, end in spans:
        within |= Q(start__gte=start, start__lt=end)
    return within


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
