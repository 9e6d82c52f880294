"""Days of the last week whose cost departs from what is usual for a team or a deployment.

It takes a second for thousands of deployments, so it is computed at most once an hour, by whoever needs it then: the
sweep of alerts each minute, and pages where no sweep runs.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from django.db.models import BigIntegerField, Max, Model, Sum
from django.db.models.functions import Cast
from redis.exceptions import RedisError

from fleet.costs.domain import anomalies
from fleet.costs.domain.anomalies import Anomaly
from fleet.costs.selectors import sealed_hours
from fleet.models import LedgerDay, LedgerTeamDay
from portal.core import cache, clock

JUDGED_DAYS: Final = 7
_KEPT: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
# Of the most dollars above or below what is usual.
_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class UnusualDay:
    """An unusual day of a deployment, or of a whole team if `deployment` is empty."""

    team_slug: str
    deployment: str
    anomaly: Anomaly


@dataclass(frozen=True, slots=True)
class UnusualDays:
    """The newest days first, then by the difference."""

    computed_at: datetime
    days: Sequence[UnusualDay]


def recent() -> UnusualDays:
    """Return the unusual days, cached for at most an hour and until the ledger has a newer day."""
    now = clock.now()
    newest = LedgerTeamDay.objects.aggregate(newest=Max("pk"))["newest"]
    key = f"costs-anomalies-{newest}-{now.astimezone(UTC):%Y%m%d}"
    # Without the cache they are computed each time.
    with contextlib.suppress(RedisError, OSError):
        kept: Any = cache.get(key)
        if kept is not None and now - _KEPT < (at := datetime.fromisoformat(kept["at"])) <= now:
            return UnusualDays(at, [_read(row) for row in kept["days"]])
    days = compute(now)
    with contextlib.suppress(RedisError, OSError):
        stated = {"at": now.isoformat(), "days": [_written(day) for day in days]}
        cache.put(key, stated, seconds=_KEPT.total_seconds())
    return UnusualDays(now, days)


def filter_by_teams(days: UnusualDays, team_slugs: Collection[str] | None) -> list[UnusualDay]:
    """Keep the unusual days of these teams. None keeps all, including unattributed ones."""
    return [one for one in days.days if team_slugs is None or one.team_slug in team_slugs]


def compute(now: datetime) -> list[UnusualDay]:
    """Return the unusual whole days (UTC), from sealed hours without demo data. A day with an hour that is not
    sealed can only be too expensive.
    """
    today = now.astimezone(UTC).date()
    sealed_to = min((end for _, end in sealed_hours.last_ends()), default=None)
    found: list[UnusualDay] = []
    for model, names in ((LedgerTeamDay, ("team_slug",)), (LedgerDay, ("team_slug", "deployment"))):
        for (team, deployment), amounts in _amounts(model, names, today).items():
            for n in range(1, JUDGED_DAYS + 1):
                anomaly = anomalies.judge(amounts, today - n * _DAY)
                if anomaly and (anomaly.is_rise or _is_sealed(anomaly.day, sealed_to)):
                    found.append(UnusualDay(team, deployment, anomaly))
    found.sort(key=_difference, reverse=True)
    return sorted(found[:_MOST], key=lambda one: one.anomaly.day, reverse=True)


def _amounts(
    model: type[Model], names: tuple[str, ...], today: date
) -> Mapping[tuple[str, str], Mapping[date, Decimal]]:
    rows = model._default_manager.filter(
        day__gte=today - (anomalies.DAYS + JUDGED_DAYS) * _DAY,
        day__lt=today,
        is_idle=False,
        is_demo=False,
    )
    micros = Cast(Sum("cost_micros"), BigIntegerField())
    sums = rows.values_list(*names, "day").annotate(micros=micros).order_by()
    amounts: dict[tuple[str, str], dict[date, Decimal]] = defaultdict(dict)
    for *of_group, day, cost in sums:
        team, deployment = (*of_group, "")[:2]
        if len(names) == 1 or deployment:
            amounts[team, deployment][day] = Decimal(cost).scaleb(-6)
    return {key: days for key, days in amounts.items() if _may_depart(days.values())}


def _may_depart(amounts: Collection[Decimal]) -> bool:
    """A group that never costs $10 a day cannot be $10 from anything."""
    return max(amounts) > anomalies.LEAST_AMOUNT


def _is_sealed(day: date, sealed_to: datetime | None) -> bool:
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + _DAY
    return sealed_to is not None and end <= sealed_to


def _difference(one: UnusualDay) -> Decimal:
    return abs(one.anomaly.amount - one.anomaly.usual_amount)


def _written(one: UnusualDay) -> list[str]:
    """Return a day as text, so that a process of another release can read it."""
    anomaly = one.anomaly
    values = (anomaly.day.isoformat(), str(anomaly.amount), str(anomaly.usual_amount))
    return [one.team_slug, one.deployment, *values]


def _read(row: Sequence[str]) -> UnusualDay:
    team, deployment, day, amount, usual = row
    anomaly = Anomaly(date.fromisoformat(day), Decimal(amount), Decimal(usual))
    return UnusualDay(team, deployment, anomaly)
