"""After a test with real transactions its rows are gone, as with the TRUNCATE of Django, which takes twenty times as long."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from portal.accounts.models import Membership, Role, Team
from portal.audit.models import AuditEvent
from tests.accounts import make_membership, make_team, make_user
from tests.fixtures import emptied_tables

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no TRUNCATE"),
]


def flush() -> None:
    call_command("flush", verbosity=0, interactive=False, reset_sequences=False)


def pages_of(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_relation_size(%s::regclass) / 8192", [table])
        return int(cursor.fetchone()[0])


@pytest.fixture
def another() -> Iterator[psycopg.Connection]:
    connection.ensure_connection()
    with psycopg.connect(connection.connection.info.dsn) as other:
        yield other
        other.rollback()


def test_rows_that_refer_to_each_other_and_events_that_refuse_to_go_are_gone() -> None:
    make_membership(user=make_user(username="ana"), team=make_team(slug="vision"), role=Role.LEAD)
    AuditEvent.objects.bulk_create([AuditEvent(action="x", at="2026-01-01T00:00Z")])

    flush()

    assert not Team.objects.exists()
    assert not Membership.objects.exists()
    assert not AuditEvent.objects.exists()


def test_it_waits_for_whoever_still_writes(another: psycopg.Connection) -> None:
    make_team(slug="vision")
    another.execute("UPDATE accounts_team SET name = 'Other'")
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")

    with pytest.raises(CommandError) as refused:
        flush()

    assert "lock timeout" in str(refused.value.__cause__)
    another.rollback()
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0")
    assert Team.objects.count() == 1


def test_files_that_have_grown_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    make_team(slug="vision")
    monkeypatch.setattr(emptied_tables, "MOST_PAGES", 0)
    flush()  # whatever the tests before have left
    assert pages_of("accounts_team") == 0
    make_team(slug="vision")
    monkeypatch.setattr(emptied_tables, "MOST_PAGES", 500)

    flush()

    assert pages_of("accounts_team") == 1
    for number in range(200):
        make_team(slug=f"team-{number}", name="x" * 80)
    assert pages_of("accounts_team") > 2
    monkeypatch.setattr(emptied_tables, "MOST_PAGES", 2)

    flush()

    assert pages_of("accounts_team") == 0
