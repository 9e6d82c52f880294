"""No page and no list needs more queries because there is more of what it shows.

Each is requested with few rows behind it and with several times as many. `make bench NAME=pages` holds the same
addresses to their time, size and number of queries in a large portal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from django.core.cache import cache
from django.db import connection, reset_queries, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.benchmarks import every_page
from tests.portal import many_rows
from tests.portal.api.full_world import FullWorld

pytestmark = [pytest.mark.django_db]
# More than a form lists in both: beyond that it counts once how many there are.
FEW, MANY = 0.06, 0.18


def test_no_address_needs_more_queries_for_more_rows(full_world: FullWorld) -> None:
    """First as a process does that has just started, which fills what is kept: with many rows, as the first
    of all needs what no later one does. Only where that took more are the requests that follow counted.
    """
    full_world.names["trial_id"] = full_world.deployment.pk

    many, few = _counts(full_world, MANY), _counts(full_world, FEW)
    suspects = {key for key in few if many[key] > few[key]}
    if suspects:
        few, many = _counts(full_world, FEW, suspects), _counts(full_world, MANY, suspects)

    more = {key: (few[key], many[key]) for key in suspects if many[key] > few[key]}
    assert not more, "\n".join(f"{key}: {was} to {now}" for key, (was, now) in more.items())


def _counts(
    full: FullWorld, scale: float, again: Collection[str] | None = None
) -> Mapping[str, int]:
    """Queries by role and address, of those `again` at their second request. The rows are gone afterwards."""
    counts = {}
    with transaction.atomic():
        many_rows.fill(full, scale)
        clients = {}
        for role in ("admin", "lead"):
            clients[role] = Client(raise_request_exception=True)
            clients[role].force_login(getattr(full.world, role))
        for item in every_page.addresses(full):
            key = f"{item.role} {item.path}"
            if again is not None:
                if key not in again:
                    continue
                clients[item.role].get(item.path)
            # Django keeps the last 9,000, which all addresses together exceed on a slow machine.
            reset_queries()
            with CaptureQueriesContext(connection) as captured:
                clients[item.role].get(item.path)
            counts[key] = len(captured)
        transaction.set_rollback(True)
    cache.clear()
    return counts
