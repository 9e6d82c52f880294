"""Read the ledger filter from the query."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from fleet.costs.domain.results import UNATTRIBUTED
from fleet.costs.selectors.ledger_filter import LedgerFilter
from fleet.costs.web import query
from fleet.gpus.domain.intervals import whole_hours

_FIRST, _LAST = (datetime(year, 1, 1, tzinfo=UTC) for year in (1900, 9999))


def read(params: Mapping[str, str], *, now: datetime) -> LedgerFilter:
    """Read the filter, which covers whole hours; without times it covers this month."""
    month = query.read({}, now=now, team_slugs=())
    start = _time(params.get("from", "")) or month.start
    end = _time(params.get("to", "")) or month.end
    if start < end:
        start, end = whole_hours(start, end)
    holder = params.get("holder")
    kind = params.get("kind", "")
    return LedgerFilter(
        start=start,
        end=end,
        team_slug="" if holder == UNATTRIBUTED else holder,
        model=params.get("model", ""),
        deployment=params.get("deployment", ""),
        revision=params.get("revision", ""),
        cluster_name=params.get("cluster", ""),
        is_idle={"idle": True, "held": False}.get(kind),
    )


def _time(text: str) -> datetime | None:
    try:
        local = datetime.fromisoformat(text)
        at = local.astimezone(UTC)
    # At the ends of the calendar there are times that have no UTC.
    except (ValueError, OverflowError):
        return None
    # Days before and after it are computed too.
    return at if local.tzinfo and _FIRST <= at <= _LAST else None
