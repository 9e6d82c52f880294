"""No page and no list needs more queries because there is more of what it shows.

Each is requested with few rows behind it and with several times as many. `make bench NAME=pages` holds the same
addresses to their time, size and number of queries in a large portal.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.core.cache import cache
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.benchmarks import every_page
from tests.portal import many_rows
from tests.portal.api.full_world import FullWorld

pytestmark = [pytest.mark.django_db]
# More than a form lists in both: beyond that it counts once how many there are.
FEW, MANY = 0.06, 0.18


def test_no_address_needs_more_queries_for_more_rows(full_world: FullWorld) -> None:
    full_world.names["trial_id"] = full_world.deployment.pk

    few, many = _counts(full_world, FEW), _counts(full_world, MANY)

    more = {key: (few[key], many[key]) for key in few if many[key] > few[key]}
    assert not more, "\n".join(f"{key}: {was} to {now}" for key, (was, now) in more.items())


def _counts(full: FullWorld, scale: float) -> Mapping[str, int]:
    """Queries by role and address. The rows are gone afterwards."""
    counts = {}
    with transaction.atomic():
        many_rows.fill(full, scale)
        clients = {}
        for role in ("admin", "lead"):
            clients[role] = Client(raise_request_exception=True)
            clients[role].force_login(getattr(full.world, role))
        for item in every_page.addresses(full):
            clients[item.role].get(item.path)
            with CaptureQueriesContext(connection) as captured:
                clients[item.role].get(item.path)
            counts[f"{item.role} {item.path}"] = len(captured)
        transaction.set_rollback(True)
    cache.clear()
    return counts
