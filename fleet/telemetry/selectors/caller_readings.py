"""Whether the callers of a cluster's deployments are counted."""

from __future__ import annotations

from datetime import datetime

from fleet.models import CallerReading
from fleet.telemetry.domain.counters import LONGEST_GAP


def describe_problem(*, cluster_id: int, now: datetime) -> str:
    """Return why callers are not counted now. Empty while they are."""
    row = CallerReading.objects.filter(cluster_id=cluster_id).first()
    if row is None:
        return "The gateway was not read yet"
    if row.problem:
        return row.problem
    if row.read_at is None or now - row.read_at > LONGEST_GAP:
        return "The gateway was not read recently"
    return ""
