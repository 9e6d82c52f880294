"""The database of a release: its dump restored beside the database of the tests, and migrated by this version.

`slipway_0_2_0.sql` was dumped by `pg_dump --inserts` of PostgreSQL 18 from a database that commit fd7171d0 migrated and
whose services filled it, with at least one row in every table. Comments and settings of the session were left out,
names of the schema too, and long manifests were cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from psycopg import sql

from tests.portal.install.schema import schema_of

DUMP = Path(__file__).with_name("slipway_0_2_0.sql")


@dataclass(frozen=True)
class Upgraded:
    """The upgrade as it went. `rows` are the counts of the dump by table, `fresh` is the schema of a new database."""

    rows: dict[str, int]
    plan: list[str]
    changes: Mapping[str, object]
    schema: set[str]
    fresh: set[str]


@contextmanager
def upgraded_database() -> Iterator[Upgraded]:
    """Until the end the default connection is one to the upgraded database."""
    name, before = f"release_{uuid4().hex[:8]}", str(connection.settings_dict["NAME"])
    with psycopg.connect(_address(before)) as database:
        fresh = schema_of(database)
    with psycopg.connect(_address("postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            with psycopg.connect(_address(name), autocommit=True) as database:
                database.execute(DUMP.read_bytes())
            _connect_to(name)
            try:
                yield _upgrade(fresh)
            finally:
                _connect_to(before)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} (FORCE)").format(sql.Identifier(name)))


def _upgrade(fresh: set[str]) -> Upgraded:
    rows = count_rows()
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    # What would still have to be migrated after the plan, in the eyes of the models.
    state = MigrationLoader(connection).project_state()
    detector = MigrationAutodetector(state, ProjectState.from_apps(apps))
    changes = detector.changes(graph=executor.loader.graph)
    call_command("migrate", verbosity=0, interactive=False)
    with psycopg.connect(_address(str(connection.settings_dict["NAME"]))) as database:
        schema = schema_of(database)
    return Upgraded(rows, [str(migration) for migration, _ in plan], changes, schema, fresh)


def count_rows() -> dict[str, int]:
    """Count the rows of each table."""
    with connection.cursor() as cursor:
        counts = {}
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}"')
            counts[table] = int(cursor.fetchone()[0])
        return counts


def _address(name: str) -> str:
    server = connection.get_connection_params()
    return psycopg.conninfo.make_conninfo(host=server["host"], user=server["user"], dbname=name)


def _connect_to(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
