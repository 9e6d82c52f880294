"""Read the period, teams and grouping of a request, limited to what the actor may see."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from rest_framework.request import Request

from fleet.costs.api.serializers import SpanSerializer
from fleet.costs.domain.results import GroupBy, IdleRule, Step
from fleet.gpus.domain.intervals import HOUR, hour_of, whole_hours
from portal.accounts import policy, teams
from portal.accounts.models import User
from portal.api.requests import read_query
from portal.core import clock
from portal.core.errors import Invalid

_LONGEST = timedelta(days=400)
# The period before is computed too, and days are counted past the end.
_BOUNDS = (datetime(1900, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Span:
    start: datetime
    end: datetime
    team_slugs: Collection[str] | None
    group_by: GroupBy
    step: Step
    idle_rule: IdleRule = IdleRule.SEPARATE
    day_offset: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class RequestedPeriod:
    """Whole UTC hours: what is answered and summed, whatever moments were requested. `day_offset` is the offset from UTC
    in which they were written; its days are those of the answer.
    """

    start: datetime
    end: datetime
    day_offset: timedelta = timedelta(0)


def read(
    request: Request, actor: User, serializer_class: type[SpanSerializer] = SpanSerializer
) -> Span:
    """Read the period and the teams of a query. Admins see everything, including idle and unattributed costs;
    others see their teams. Raises NotFound for a team that the actor may not see, Invalid for an empty or too
    long period.
    """
    query = read_query(serializer_class, request)
    period = parse_period(query)
    return Span(
        start=period.start,
        end=period.end,
        day_offset=period.day_offset,
        team_slugs=visible_slugs(actor, query.get("team")),
        group_by=GroupBy(query["group_by"]),
        step=Step(query["step"]),
        idle_rule=IdleRule(query.get("idle", IdleRule.SEPARATE)),
    )


def parse_period(query: Mapping[str, Any]) -> RequestedPeriod:
    """Return `start` and `end` as whole hours, or this month. Raises Invalid."""
    now = clock.now()
    given = query.get("start") or query.get("end")
    offset = (given.utcoffset() if given else None) or timedelta(0)
    local = now.astimezone(timezone(offset))
    month = local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    start, end = query.get("start", month), query.get("end", hour_of(now) + HOUR)
    if not timedelta(0) < end - start <= _LONGEST:
        raise Invalid(
            "The period must start before it ends and last at most 400 days.",
            fields={"end": "after start, at most 400 days later"},
        )
    first, last = _BOUNDS
    if start < first or end > last:
        raise Invalid(
            "The period must lie between the years 1900 and 9999.",
            fields={"start": "from 1900 to 9998"},
        )
    return RequestedPeriod(*whole_hours(start, end), offset)


def visible_slugs(actor: User, team_slug: str | None) -> Collection[str] | None:
    """Return the slugs of the teams that the actor may see, or `team_slug` alone. None means the whole fleet.
    Raises NotFound for a team that the actor may not see.
    """
    if team_slug:
        return [teams.get_visible(actor=actor, slug=team_slug).slug]
    if policy.sees_all(actor):
        return None
    return list(policy.visible_teams(actor).values_list("slug", flat=True))
