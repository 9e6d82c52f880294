from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command

from deployments.registry.gateways.object_store import S3Store
from portal.audit import anchor_store, anchors, daily, sealing
from portal.audit.models import AnchorCopy, AuditEvent, ChainAnchor, ChainCheck, ChainLink
from portal.audit.verification import Kind, verify
from tests.portal.audit.trails import record, tamper

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def moving_clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOW, tick=False) as clock:
        yield clock


@pytest.fixture
def events() -> list[AuditEvent]:
    """Three chained events."""
    rows = record("a", "b", "c")
    sealing.seal()
    return rows


def _problem(**options: Any) -> tuple[Kind, str]:
    problem = verify(with_store=False, **options).problem
    assert problem
    return problem.kind, problem.message


def _verify(*arguments: str) -> str:
    out = StringIO()
    call_command("audit_verify", *arguments, stdout=out)
    return out.getvalue()


def test_an_intact_chain_is_verified_with_what_still_waits(events: list[AuditEvent]) -> None:
    record("not chained yet")

    report = verify(with_store=False)

    assert (report.problem, report.position, report.unsealed) == (None, 3, 1)
    assert report.hash == ChainLink.objects.get(position=3).hash
    assert _verify("--without-store") == (
        f"Intact: 3 events, 0 anchors agree, 1 not chained yet. Head: 3:{report.hash}\n"
    )


def test_an_empty_trail_is_intact() -> None:
    assert verify(with_store=False).problem is None


@pytest.mark.parametrize(
    "change",
    ["reason = 'x'", "actor_name = 'ana'", "after = '{}'", "at = '2026-11-20T09:00:00.000001Z'"],
)
def test_the_first_changed_event_is_named(events: list[AuditEvent], change: str) -> None:
    tamper(f"UPDATE audit_auditevent SET {change} WHERE id IN (%s, %s)", events[1].pk, events[2].pk)

    kind, message = _problem()

    assert kind is Kind.CHANGED
    assert message.startswith(f"event {events[1].pk} at position 2, or its link, was changed")
    with pytest.raises(CommandError, match=f"changed: event {events[1].pk} ") as refusal:
        _verify("--without-store")
    assert refusal.value.returncode == 1


def test_a_changed_link_is_named(events: list[AuditEvent]) -> None:
    tamper("UPDATE audit_chainlink SET hash = %s WHERE position = 3", "0" * 64)

    assert _problem()[1].startswith(f"event {events[2].pk} at position 3, or its link, was changed")


def test_a_deleted_event_is_named(events: list[AuditEvent]) -> None:
    tamper("DELETE FROM audit_auditevent WHERE id = %s", events[1].pk)

    assert _problem() == (Kind.MISSING, f"event {events[1].pk} at position 2 was deleted")


def test_an_event_deleted_with_its_link_is_named(events: list[AuditEvent]) -> None:
    tamper("DELETE FROM audit_auditevent WHERE id = %s", events[1].pk)
    tamper("DELETE FROM audit_chainlink WHERE position = 2")

    assert _problem() == (Kind.MISSING, "position 2 was deleted from the chain")


@pytest.mark.parametrize("is_sealed", [True, False])
def test_an_event_inserted_with_an_older_time_is_named(
    events: list[AuditEvent], *, is_sealed: bool
) -> None:
    with time_machine.travel(NOW - timedelta(hours=1, seconds=1), tick=False):
        [inserted] = record("backdated")
    if is_sealed:
        sealing.seal()

    assert _problem()[0] is Kind.INSERTED
    assert _problem()[1].startswith(f"event {inserted.pk} says 2026-11-20 07:59 UTC")


def test_an_event_that_took_an_hour_to_commit_is_not_taken_for_inserted(
    events: list[AuditEvent],
) -> None:
    with time_machine.travel(NOW - timedelta(hours=1), tick=False):
        record("slow")
    sealing.seal()

    assert verify(with_store=False).problem is None


def test_a_chain_that_was_computed_anew_differs_from_its_anchor(events: list[AuditEvent]) -> None:
    anchor = anchors.make()
    assert anchor
    tamper("UPDATE audit_auditevent SET actor_name = 'ana' WHERE id = %s", events[0].pk)
    tamper("DELETE FROM audit_chainlink")
    sealing.seal(floor=0)

    kind, message = _problem()

    assert kind is Kind.REWRITTEN
    assert message.startswith(
        "the chain up to position 3 is not the one that was anchored (database, anchor of 2026-11-20)"
    )


def test_an_anchor_from_the_log_finds_what_the_database_hides(events: list[AuditEvent]) -> None:
    logged = f"3:{ChainLink.objects.get(position=3).hash}"
    tamper("UPDATE audit_auditevent SET actor_name = 'ana' WHERE id = %s", events[0].pk)
    tamper("DELETE FROM audit_chainlink")
    sealing.seal(floor=0)
    assert verify(with_store=False).problem is None

    with pytest.raises(CommandError, match=r"rewritten: .* anchored \(given\)"):
        _verify("--without-store", "--anchor", logged)
    with pytest.raises(CommandError, match="write POSITION:HASH"):
        _verify("--anchor", "3")


def test_a_chain_that_was_cut_off_is_missing_its_anchor(events: list[AuditEvent]) -> None:
    anchors.make()
    tamper("DELETE FROM audit_auditevent WHERE id >= %s", events[2].pk)
    tamper("DELETE FROM audit_chainlink WHERE position = 3")

    kind, message = _problem()

    assert kind is Kind.MISSING
    assert message.startswith("the chain ends at position 2, but position 3 was anchored")


def test_an_anchor_is_made_once_a_day_and_is_an_event(
    events: list[AuditEvent], moving_clock: time_machine.Traveller
) -> None:
    anchor = anchors.make()

    assert anchors.make() is None
    head = ChainLink.objects.get(position=3)
    assert (anchor.position, anchor.hash, anchor.last_event_id) == (3, head.hash, events[2].pk)
    event = AuditEvent.objects.get(action="audit.anchored")
    assert (event.actor_name, event.evidence, event.after) == (
        "slipway",
        head.hash,
        {"position": 3},
    )
    moving_clock.shift(timedelta(days=1))
    assert anchors.make().position == 4


def test_the_daily_run_anchors_stores_under_lock_and_verifies(
    events: list[AuditEvent], s3_store: S3Store
) -> None:
    daily.run()
    daily.run()

    anchor, copy, check = (
        ChainAnchor.objects.get(),
        AnchorCopy.objects.get(),
        ChainCheck.objects.get(),
    )
    assert (copy.key, copy.anchor) == ("audit/anchors/2026-11-20.json", anchor)
    assert copy.locked_until == NOW + timedelta(days=400)
    response = s3_store.client.head_object(
        Bucket=s3_store.bucket, Key=copy.key, VersionId=copy.version_id
    )
    assert response["ObjectLockMode"] == "COMPLIANCE"
    assert (check.position, check.anchors, check.problem) == (3, 2, "")
    assert "2 anchors agree" in _verify()


def test_the_owner_of_the_database_cannot_change_the_anchor_in_the_store(
    events: list[AuditEvent], s3_store: S3Store
) -> None:
    """The strongest case: events, links and anchors of the database all agree with each other."""
    daily.run()
    tamper("UPDATE audit_auditevent SET actor_name = 'ana' WHERE id = %s", events[0].pk)
    tamper("DELETE FROM audit_chainlink")
    sealing.seal(floor=0)
    forged = ChainLink.objects.get(position=3).hash
    tamper("UPDATE audit_chainanchor SET hash = %s", forged)
    assert verify(with_store=False).problem is None
    # Also with a newer version of the object, and after a deletion that only hides it.
    key = "audit/anchors/2026-11-20.json"
    s3_store.put(key, anchors.body_of(ChainAnchor.objects.get()), content_type="application/json")
    s3_store.client.delete_object(Bucket=s3_store.bucket, Key=key)

    with pytest.raises(
        CommandError, match=r"rewritten: .*\(object audit/anchors/2026-11-20\.json\)"
    ):
        _verify()


def test_a_crash_after_storing_an_anchor_stores_it_again_and_nothing_differs(
    events: list[AuditEvent], s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(**fields: Any) -> None:
        raise RuntimeError("killed")

    anchors.make()
    with monkeypatch.context() as patch:
        patch.setattr(AnchorCopy.objects, "get_or_create", crash)
        with pytest.raises(RuntimeError, match="killed"):
            anchors.store_copies()
    assert AnchorCopy.objects.count() == 0

    assert anchors.store_copies() == 1
    assert anchors.store_copies() == 0
    assert [key for key, _ in anchor_store.read_all()] == ["audit/anchors/2026-11-20.json"]
    assert (verify().problem, verify().anchors) == (None, 2)


def test_a_stored_anchor_that_is_gone_is_named(
    events: list[AuditEvent], s3_store: S3Store, settings: Any
) -> None:
    settings.SLIPWAY_AUDIT_ANCHOR_DAYS = 0
    daily.run()
    assert AnchorCopy.objects.get().locked_until is None
    s3_store.delete_all_versions("audit/")

    with pytest.raises(CommandError, match=r"missing: object audit/anchors/2026-11-20\.json"):
        _verify()


def test_unreadable_anchors_are_an_exit_code_of_their_own(
    events: list[AuditEvent], s3_store: S3Store, settings: Any
) -> None:
    settings.SLIPWAY_S3_BUCKET = "no-such-bucket"

    with pytest.raises(CommandError, match="no-such-bucket") as refusal:
        _verify()
    daily.run()

    assert refusal.value.returncode == 2
    assert ChainAnchor.objects.count() == 1
    assert (AnchorCopy.objects.count(), ChainCheck.objects.count()) == (0, 0)


def test_a_broken_chain_is_recorded_and_logged(
    events: list[AuditEvent], s3_store: S3Store, caplog: pytest.LogCaptureFixture
) -> None:
    tamper("DELETE FROM audit_auditevent WHERE id = %s", events[1].pk)

    daily.run()

    problem = f"missing: event {events[1].pk} at position 2 was deleted"
    assert (ChainCheck.objects.get().position, ChainCheck.objects.get().problem) == (1, problem)
    assert f"the audit trail is not intact: {problem}" in caplog.text
