"""A query for a row of which there is at most one, by its key or under a unique constraint."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import QuerySet

Row = TypeVar("Row")


def find_one(rows: QuerySet[Any, Row]) -> Row | None:
    """Return the only row, or None.

    `first` would sort it. Django then looks up every selected column among those to sort by, which takes as long as
    all the rest of the statement where rows are joined.
    """
    return next(iter(rows.order_by()[:1]), None)
