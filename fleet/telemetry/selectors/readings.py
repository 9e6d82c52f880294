"""Sums of readings over a period: days that were summed up from their roll-up, all others from hours.

Of teams, hours of a day that was summed up have a roll-up of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import F, Max, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform

from fleet.models import SummedDay, TeamUsageDay, TeamUsageHour, WorkloadDay, WorkloadHour

_DAY = timedelta(days=1)
Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class ReadingSum:
    """A sum of readings. `labels` are those of the workloads in the requested order, empty for the sum of a team.
    `cluster_name` is empty otherwise.
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


def sum_by_team(
    *, start: datetime, end: datetime, team_slugs: Collection[str] | None
) -> Iterator[ReadingSum]:
    """Yield the sums by team and cluster. A pair may come several times."""
    cut = _cut(start, end)
    sums: list[QuerySet[Any]] = []
    if cut.days:
        sums.append(TeamUsageDay.objects.filter(_of_days(cut.days)))
    if cut.summed_spans:
        sums.append(TeamUsageHour.objects.filter(_within(cut.summed_spans, "hour")))
    for rows in sums:
        if team_slugs is not None:
            rows = rows.filter(team_slug__in=team_slugs)  # noqa: PLW2901  the same rows, fewer
        yield from _team_sums(rows, "team_slug", "cluster_name", F("tokens"))
    if cut.spans:
        hours = WorkloadHour.objects.filter(_within(cut.spans))
        if team_slugs is not None:
            hours = hours.filter(workload__team__slug__in=team_slugs)
        names = ("workload__team__slug", "workload__cluster__name")
        yield from _team_sums(hours, *names, F("prompt_tokens") + F("generation_tokens"))


def sum_by_workload(
    *,
    start: datetime,
    end: datetime,
    team_slugs: Collection[str] | None,
    labels: Sequence[str] = (),
    models: Collection[str] = (),
    deployments: Collection[str] = (),
) -> Iterator[ReadingSum]:
    """Yield the sums by team and these labels of the workload. A group may come several times. Models or
    deployments limit them to the workloads that serve them.
    """
    cut = _cut(start, end)
    days, spans = cut.days, [*cut.summed_spans, *cut.spans]
    # SQLite cannot look for text among values: KT(…)__in is no JSON there.
    filters: dict[str, Any] = {
        "workload__team__slug__in": team_slugs,
        "workload__labels__model__in": list(models) or None,
        "workload__labels__deployment__in": list(deployments) or None,
    }
    conditions = {name: values for name, values in filters.items() if values is not None}
    sources: list[tuple[QuerySet[Any], Any]] = []
    if days:
        sources.append((WorkloadDay.objects.filter(_of_days(days), **conditions), F("tokens")))
    if spans:
        hours = WorkloadHour.objects.filter(_within(spans), **conditions)
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


@dataclass(slots=True)
class _Cut:
    """Days that were summed up, whole or so far; spans of which the hours of teams are; and what is left."""

    days: list[date] = field(default_factory=list)
    summed_spans: list[Span] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)


def _cut(start: datetime, end: datetime) -> _Cut:
    kept = SummedDay.objects.filter(
        day__gte=start.astimezone(UTC).date(), day__lte=end.astimezone(UTC).date()
    )
    cut, at = _Cut(), start
    for day, until, has_hours in kept.values_list("day", "until", "has_hours").order_by("day"):
        first, last = _midnight(day), until or _midnight(day) + _DAY
        is_whole = start <= first and last <= end
        first, last = max(first, start), min(last, end)
        if first >= last or not (is_whole or has_hours):
            continue
        if at < first:
            cut.spans.append((at, first))
        if is_whole:
            cut.days.append(day)
        else:
            cut.summed_spans.append((first, last))
        at = last
    if at < end:
        cut.spans.append((at, end))
    return cut


def _of_days(days: list[date]) -> Q:
    """Return a condition that matches these days as ranges: given a list of days, PostgreSQL reads all days of a
    workload.
    """
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


def _within(spans: list[Span], time: str = "start") -> Q:
    within = Q(pk__in=[]) if not spans else Q()
    for start, end in spans:
        within |= Q(**{f"{time}__gte": start, f"{time}__lt": end})
    return within


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
