"""Events for tests of the chain, and what the owner of the database can do to them."""

from __future__ import annotations

from django.db import connection, transaction

from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.audit.actions import register
from portal.audit.models import AuditEvent
from tests.accounts import make_team

TESTED = register("test.done", "tested")


def record(*labels: str) -> list[AuditEvent]:
    team = make_team()
    with transaction.atomic():
        return [
            trail.record(actor=SYSTEM, action=TESTED, obj=team, label=label, after={"weight": 0.5})
            for label in labels
        ]


def tamper(statement: str, *values: str | int) -> None:
    """As a superuser of the database, who switches the triggers off."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(statement, values)
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = origin")
