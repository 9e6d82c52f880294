"""Costs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.types import Costs as CostsAnswer


class Costs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(
        self,
        *,
        team: str = "",
        group_by: str = "deployment",
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> CostsAnswer:
        """Hours that start in [start, end); left out, this month. The rows of all pages."""
        query = {
            "team": team,
            "group_by": group_by,
            "start": start.isoformat() if start else "",
            "end": end.isoformat() if end else "",
        }
        pages = [decode(CostsAnswer, page) for page in self._connection.answers("costs", query)]
        return replace(pages[0], rows=tuple(row for page in pages for row in page.rows))
