"""Fixtures of journeys: a browser for a module, and people who come to the portal with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from tests.deployments.browsing import chromium_for_tests
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.journeys.visitor import Visit, visiting
from tests.waiting import wait_for

__all__ = ["cluster_calls", "moving_clock", "world"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_for_tests() as running:
        yield running


@pytest.fixture
def visit(chromium: Browser, live_server: LiveServer, world: World) -> Iterator[Visit]:
    with visiting(chromium, live_server.url) as opened:
        yield opened
    # A poll that is still answered would hold rows while the tables are emptied.
    wait_for("the server answers nobody any more", _is_idle)


def _is_idle() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND state IN ('active', 'idle in transaction')"
        )
        (busy,) = cursor.fetchone()
    return busy == 0
