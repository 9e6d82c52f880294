"""Ledger entries of deployments with callers, one for each caller: their sums stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby

from fleet.costs.domain import callers
from fleet.costs.domain.callers import Hour, Shares
from fleet.costs.domain.results import LedgerEntry
from fleet.costs.selectors import hours
from fleet.costs.selectors.callers import Counted, read_counted_hours
from fleet.models import CallerHour
from portal.core.money import split_exactly

_MILLISECOND = Decimal(1)


@dataclass(frozen=True, slots=True)
class _Team:
    counted: Counted
    used: Mapping[tuple[str, datetime], hours.Use]


def split(entries: Iterable[LedgerEntry]) -> Iterator[LedgerEntry]:
    """Split `entries`, in order of time, by caller. What was counted is read one day at a time, for the teams with
    callers.
    """
    for day, of_day in groupby(entries, key=lambda entry: entry.hour.astimezone(UTC).date()):
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        teams = _teams(start, start + timedelta(days=1))
        for entry in of_day:
            yield from _parts(entry, teams.get(entry.team_slug))


def _teams(start: datetime, end: datetime) -> dict[str, _Team]:
    found = CallerHour.objects.filter(hour__gte=start, hour__lt=end)
    slugs = found.exclude(caller="").values_list("team_slug", flat=True).distinct().order_by()
    return {
        slug: _Team(
            read_counted_hours(team_slug=slug, start=start, end=end),
            hours.read_use(slug, start, end),
        )
        for slug in slugs
    }


def _parts(entry: LedgerEntry, team: _Team | None) -> Iterator[LedgerEntry]:
    key = (entry.labels.get("deployment", ""), entry.hour)
    counted = team.counted.get(key) if team else None
    is_empty = not entry.cost_amount and not entry.gpu_milliseconds
    if team is None or counted is None or not counted.callers or is_empty:
        yield entry
        return
    served = team.used.get(key, hours.Use()).requests
    shares = callers.compute_shares(
        Hour(entry.cost_amount, counted.callers, served, counted.is_counted)
    )
    yield from _by(shares, entry)


def _by(shares: Shares, entry: LedgerEntry) -> Iterator[LedgerEntry]:
    amounts, rest = callers.divide(entry.cost_amount, shares, split_exactly)
    weights = [*shares.callers.values(), shares.rest_weight]
    times = split_exactly(Decimal(entry.gpu_milliseconds), weights, unit=_MILLISECOND)
    for caller, amount, ms in zip(
        [*amounts, ""], [*amounts.values(), rest], map(int, times), strict=True
    ):
        if amount or ms:
            yield replace(entry, caller=caller, cost_amount=amount, gpu_milliseconds=ms)
