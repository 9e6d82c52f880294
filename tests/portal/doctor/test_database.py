"""The database's role, triggers, migrations and clock, each broken on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from portal.accounts.policy import SYSTEM
from portal.audit import anchors, sealing, trail
from portal.audit.actions import register
from portal.audit.models import StreamPosition
from portal.core import clock
from portal.doctor.lines import Status
from tests.accounts import make_team
from tests.portal.doctor.conftest import Doctor, failing

_TRIED = register("doctor.tried", "tried the doctor")

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="roles are PostgreSQL's"),
]


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture
def portal_role() -> Iterator[str]:
    """As the portal's role of deploy/postgres-roles.sh, until the test's transaction is rolled back."""
    name = f"portal_{uuid4().hex[:8]}"
    execute(f"CREATE ROLE {name}")
    execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}")
    yield name
    execute("RESET ROLE")


def test_a_good_database_passes(doctor: Doctor, portal_role: str) -> None:
    execute(f"SET ROLE {portal_role}")

    lines = doctor("database")

    assert not failing(lines)
    assert lines["Migrations"].detail == "all applied"
    assert lines["Clock"].status is Status.OK
    role = doctor("audit trail")["Database role"]
    assert (role.status, role.detail) == (
        Status.OK,
        f"{portal_role} owns no audit table and may empty none",
    )


def test_a_superuser_may_do_anything(doctor: Doctor) -> None:
    role = doctor("audit trail")["Database role"]

    assert role.status is Status.FAILED
    assert "is a superuser" in role.detail
    assert "deploy/postgres-roles.sh" in role.fix


@pytest.mark.parametrize(
    ("statement", "detail"),
    [
        ("ALTER TABLE audit_chainlink OWNER TO {role}", "owns audit_chainlink"),
        ("GRANT TRUNCATE ON audit_auditevent TO {role}", "may TRUNCATE audit_auditevent"),
    ],
)
def test_a_role_that_can_undo_the_trail_is_named(
    doctor: Doctor, portal_role: str, statement: str, detail: str
) -> None:
    execute(statement.format(role=portal_role))
    execute(f"SET ROLE {portal_role}")

    role = doctor("audit trail")["Database role"]

    assert role.status is Status.FAILED
    assert detail in role.detail


@pytest.mark.parametrize("name", ["audit_events_are_final", "audit_events_are_kept"])
def test_a_trigger_that_is_off_is_found(doctor: Doctor, name: str) -> None:
    assert doctor("audit trail")["Triggers"].status is Status.OK

    execute(f"ALTER TABLE audit_chainlink DISABLE TRIGGER {name}")

    line = doctor("audit trail")["Triggers"]
    assert (line.status, line.detail) == (
        Status.FAILED,
        "no trigger protects audit_chainlink from changes",
    )


def test_a_migration_that_is_missing_and_one_of_a_newer_image(doctor: Doctor) -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("audit", "9999_from_the_future")
    assert doctor("database")["Migrations"].detail == (
        "the database is newer than this image: it has audit.9999_from_the_future"
    )

    recorder.record_unapplied("portal_api", "0001_initial")

    line = doctor("database")["Migrations"]
    assert line.status is Status.FAILED
    assert line.detail == "1 not applied, the first is portal_api.0001_initial"


def test_a_clock_that_is_off(doctor: Doctor) -> None:
    with time_machine.travel(clock.now() + timedelta(seconds=90), tick=False):
        line = doctor("database")["Clock"]

    assert line.status is Status.FAILED
    assert line.detail.endswith("behind the portal")


def test_events_that_nobody_seals_and_a_day_without_anchor(doctor: Doctor) -> None:
    team = make_team()
    trail.record(actor=SYSTEM, action=_TRIED, obj=team, label=team.slug)
    assert "Sealing" not in doctor("audit trail")

    with time_machine.travel(clock.now() + timedelta(minutes=6)):
        assert "1 events wait since" in doctor("audit trail")["Sealing"].detail
        sealing.seal()
        lines = doctor("audit trail")
        assert lines["Chain"].detail == "intact: 1 events, 0 anchors agree"
        assert "Sealing" not in lines
        anchors.make()
        assert "is not in the bucket yet" in doctor("audit trail")["Anchors"].detail
    with time_machine.travel(clock.now() + timedelta(days=3)):
        assert "the last one is of" in doctor("audit trail")["Anchors"].detail


def test_a_changed_event_breaks_the_chain(doctor: Doctor) -> None:
    team = make_team()
    trail.record(actor=SYSTEM, action=_TRIED, obj=team, label=team.slug)
    sealing.seal()
    execute("SET LOCAL session_replication_role = replica")
    execute("UPDATE audit_auditevent SET actor_name = 'mallory'")
    execute("SET LOCAL session_replication_role = origin")

    line = doctor("audit trail")["Chain"]

    assert line.status is Status.FAILED
    assert line.detail.startswith("changed: event")


def test_a_stream_that_does_not_arrive(doctor: Doctor, settings: Any) -> None:
    assert doctor("audit trail")["Stream"].status is Status.NOTE
    settings.SLIPWAY_AUDIT_SYSLOG = "tls://siem.example.org:6514"
    assert "Stream" not in doctor("audit trail")

    StreamPosition.objects.create(target="tls://siem.example.org:6514", error="timed out")

    assert doctor("audit trail")["Stream"].detail == "tls://siem.example.org:6514: timed out"
