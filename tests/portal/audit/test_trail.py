from __future__ import annotations

import importlib

import pytest
from django.db import DatabaseError, connection, transaction

from portal.accounts.policy import SYSTEM
from portal.audit import sealing, trail
from portal.audit.actions import phrase_of, register
from portal.audit.models import AuditEvent, ChainLink
from tests.accounts import make_team

_FINAL = importlib.import_module("portal.audit.migrations.0002_append_only").FINAL
TESTED = register("test.done", "tested")


@pytest.mark.django_db
def test_an_event_keeps_names_that_outlive_their_objects() -> None:
    team = make_team(slug="vision")

    trail.record(
        actor=SYSTEM, action=TESTED, obj=team, label="vision", team_slug="vision", after={"a": 1}
    )
    team.delete()

    event = AuditEvent.objects.get()
    assert (event.actor_id, event.actor_name) == (None, "slipway")
    assert (event.object_type, event.object_label, event.after) == ("team", "vision", {"a": 1})


@pytest.mark.django_db(transaction=True)
def test_an_event_outside_the_transaction_of_its_change_is_refused() -> None:
    team = make_team()

    with pytest.raises(RuntimeError, match="outside a transaction"):
        trail.record(actor=SYSTEM, action=TESTED, obj=team, label="x")


@pytest.mark.django_db(transaction=True)
def test_an_event_vanishes_with_its_rolled_back_change() -> None:
    team = make_team()

    with transaction.atomic():
        trail.record(actor=SYSTEM, action=TESTED, obj=team, label="x")
        transaction.set_rollback(True)

    assert AuditEvent.objects.count() == 0


def test_a_code_has_one_phrase() -> None:
    assert register("test.done", "tested") is not None
    with pytest.raises(ValueError, match="registered twice"):
        register("test.done", "did something else")
    assert phrase_of("test.done") == "tested"


@pytest.mark.django_db
def test_the_trail_and_its_chain_cannot_be_emptied_in_the_database() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("the triggers are PostgreSQL's")
    with transaction.atomic():
        trail.record(actor=SYSTEM, action=TESTED, obj=make_team(), label="x")

    sealing.seal()

    for statement in (
        "UPDATE audit_auditevent SET action = 'x'",
        "DELETE FROM audit_auditevent",
        "UPDATE audit_chainlink SET hash = 'x'",
        "DELETE FROM audit_chainlink",
        *(f"TRUNCATE {table} CASCADE" for table in _FINAL),
    ):
        with (
            pytest.raises(DatabaseError, match="never changed or deleted"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)

    assert (AuditEvent.objects.count(), ChainLink.objects.count()) == (1, 1)
