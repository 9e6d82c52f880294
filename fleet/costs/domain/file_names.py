"""Names of downloads, which say the period that was summed."""

from __future__ import annotations

from datetime import UTC, datetime


def name_for_period(name: str, start: datetime, end: datetime) -> str:
    """Name a CSV file by its period in UTC: by days, or by hours where it has parts of days."""
    bounds = [at.astimezone(UTC) for at in (start, end)]
    pattern = "%Y%m%d" if not any(at.hour for at in bounds) else "%Y%m%dT%HZ"
    first, last = (at.strftime(pattern) for at in bounds)
    return f"{name}-{first}-{last}.csv"
