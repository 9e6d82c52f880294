from __future__ import annotations

import hashlib
import json
import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import time_machine
from django.db import connection

from portal.audit import anchors, sealing
from portal.audit.models import AuditEvent, ChainLink
from portal.audit.verification import verify
from tests.portal.audit.trails import record

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


def _links() -> list[tuple[int, int, str]]:
    rows = ChainLink.objects.order_by("position")
    return list(rows.values_list("position", "event_id", "hash"))


@pytest.mark.django_db
def test_a_link_hashes_the_whole_event_and_the_hash_before_it() -> None:
    with time_machine.travel(NOW, tick=False):
        first, second = record("a", "ö")

    assert sealing.seal() == 2

    hashes = ["0" * 64]
    for position, event in ((1, first), (2, second)):
        content = {
            "position": position,
            "previous": hashes[-1],
            "event": {
                "id": event.pk,
                "at": "2026-11-20T09:00:00.000000+00:00",
                "action": "test.done",
                "actor_id": None,
                "actor_name": "slipway",
                "team_slug": "",
                "object_type": "team",
                "object_id": event.object_id,
                "object_label": event.object_label,
                "before": {},
                "after": {"weight": 0.5},
                "reason": "",
                "evidence": "",
            },
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        hashes.append(hashlib.sha256(text.encode()).hexdigest())
    assert _links() == [(1, first.pk, hashes[1]), (2, second.pk, hashes[2])]


@pytest.mark.django_db
def test_sealing_again_or_in_small_batches_changes_no_link() -> None:
    events = record("a", "b", "c")
    assert sealing.seal(batch=2) == 3
    sealed = _links()

    assert sealing.seal() == 0
    assert sealing.seal(floor=0) == 0
    assert _links() == sealed
    [later] = record("d")
    assert sealing.seal() == 1
    assert _links()[:3] == sealed
    assert [row[:2] for row in _links()] == [
        (position, event.pk) for position, event in enumerate([*events, later], 1)
    ]


def _postgresql_only() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")


def _begin_event(other: psycopg.Connection) -> int:
    """Insert an event in another connection's open transaction; its id is taken at once."""
    row = other.execute(
        "INSERT INTO audit_auditevent (at, action, actor_name, team_slug, object_type, object_id,"
        " object_label, before, after, reason, evidence)"
        " VALUES (now(), 'test.done', 'slow', '', 'team', '1', 'late', '{}', '{}', '', '')"
        " RETURNING id"
    ).fetchone()
    assert row
    return int(row[0])


def _other_connection() -> psycopg.Connection:
    parameters = connection.get_connection_params()
    return psycopg.connect(
        host=parameters["host"], user=parameters["user"], dbname=parameters["dbname"]
    )


@pytest.mark.django_db(transaction=True)
def test_an_event_that_commits_late_with_a_lower_id_is_chained_at_the_end() -> None:
    _postgresql_only()
    with _other_connection() as slow:
        late_id = _begin_event(slow)
        [quick] = record("quick")
        assert late_id < quick.pk

        assert sealing.seal() == 1
        sealed = _links()
        assert [row[:2] for row in sealed] == [(1, quick.pk)]

        slow.commit()

    assert sealing.seal() == 1
    assert _links()[:1] == sealed
    assert [row[:2] for row in _links()] == [(1, quick.pk), (2, late_id)]
    assert (verify(with_store=False).problem, verify(with_store=False).position) == (None, 2)


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_event_leaves_no_gap_in_the_chain() -> None:
    _postgresql_only()
    with _other_connection() as slow:
        _begin_event(slow)
        slow.rollback()
    [event] = record("kept")

    sealing.seal()

    assert [row[:2] for row in _links()] == [(1, event.pk)]
    assert verify(with_store=False).problem is None


@pytest.mark.django_db(transaction=True)
def test_the_daily_anchor_chains_what_stayed_open_for_days() -> None:
    _postgresql_only()
    with _other_connection() as slow:
        late_id = _begin_event(slow)
        for day in range(3):
            with time_machine.travel(NOW + timedelta(days=day), tick=False):
                record("daily")
                anchors.make()
        slow.commit()

    # Not looked at between anchors, so that a pass reads two days and not the whole trail.
    assert late_id not in [row[1] for row in (sealing.seal(), _links())[1]]
    with time_machine.travel(NOW + timedelta(days=3), tick=False):
        anchors.make()

    assert late_id in [row[1] for row in _links()]
    assert AuditEvent.objects.count() == len(_links()) + 1  # the newest anchor's own event


@pytest.mark.django_db(transaction=True)
def test_two_sealers_at_once_chain_each_event_once() -> None:
    _postgresql_only()
    events = record(*(f"e{number}" for number in range(40)))
    barrier, counts = threading.Barrier(2), []

    def run() -> None:
        try:
            barrier.wait()
            counts.append(sealing.seal(batch=3))
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(counts) == 40
    assert [row[:2] for row in _links()] == [
        (position, event.pk) for position, event in enumerate(events, 1)
    ]
    assert verify(with_store=False).problem is None
