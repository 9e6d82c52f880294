"""What teams were charged, without what it was for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from decimal import Decimal

from django.db.models import Sum

from fleet.costs.selectors import metering
from fleet.models import LedgerRow
from portal.core import clock
from portal.core.money import MICRO


def by_team(*, team_slugs: Collection[str], start: datetime, end: datetime) -> dict[str, Decimal]:
    """What each team was charged for in [start, end), the estimate of unsealed hours included."""
    rows = (
        LedgerRow.objects.filter(hour__gte=start, hour__lt=end, team_slug__in=team_slugs)
        .values_list("team_slug")
        .annotate(Sum("cost_amount"))
        .order_by()
    )
    charged = frozenset(team_slugs)
    amounts: dict[str, Decimal] = defaultdict(Decimal)
    for slug, amount in rows:
        # SQLite adds decimals as floating point.
        amounts[slug] += amount.quantize(MICRO)
    for entry in metering.estimate(start=start, end=end, now=clock.now()).entries:
        if entry.team_slug in charged:
            amounts[entry.team_slug] += entry.cost_amount
    return dict(amounts)
