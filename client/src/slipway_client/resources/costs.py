"""Costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.types import Costs as CostsAnswer
from slipway_client.types import UnusualDay


class CostsResource:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(
        self,
        *,
        team: str = "",
        group_by: str = "deployment",
        start: datetime | None = None,
        end: datetime | None = None,
        idle: str = "",
    ) -> CostsAnswer:
        """Return the costs of hours that start in [start, end); if left out, this month. Includes the rows of all
        pages.

        `idle` is separate, hidden, by-cost or by-gpu-time, for platform admins and the whole fleet; if left out,
        separate.
        """
        query = {
            "team": team,
            "group_by": group_by,
            "start": start.isoformat() if start else "",
            "end": end.isoformat() if end else "",
            "idle": idle,
        }
        pages = [decode(CostsAnswer, page) for page in self._connection.answers("costs", query)]
        return replace(pages[0], rows=tuple(row for page in pages for row in page.rows))

    def unusual_days(self, *, team: str = "") -> Iterator[UnusualDay]:
        """Iterate over the unusual days of the last week, newest first: days that cost far more or less than usual."""
        rows = self._connection.pages("costs/unusual-days", {"team": team})
        return (decode(UnusualDay, row) for row in rows)
