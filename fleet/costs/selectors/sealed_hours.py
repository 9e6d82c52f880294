"""Up to when the ledger of each cluster is sealed."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max

from fleet.gpus.domain.intervals import HOUR
from fleet.models import SealedHour


def last_ends() -> list[tuple[str, datetime]]:
    """Return each cluster and the end of its last sealed hour, without clusters that have none."""
    rows = SealedHour.objects.values_list("cluster__name").annotate(Max("hour")).order_by()
    return sorted((name, hour + HOUR) for name, hour in rows)
