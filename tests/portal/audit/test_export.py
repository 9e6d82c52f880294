"""The trail as JSON lines and over REST, and the events that exports make."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from fleet.costs.services import exports
from portal.accounts.models import User
from portal.audit import sealing
from portal.audit.models import AuditEvent, ChainLink
from tests.accounts import make_user
from tests.portal.audit.trails import record, tamper

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def _exported(*arguments: str) -> list[dict[str, Any]]:
    out = StringIO()
    call_command("audit_export", *arguments, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def _get(user: User, **query: Any) -> Any:
    client = APIClient()
    client.force_authenticate(user)
    return client.get("/api/v1/audit", query)


def test_a_reader_of_the_export_recomputes_the_chain() -> None:
    record("a", "ö\n", "c")
    sealing.seal()

    lines = _exported()

    previous = "0" * 64
    for position, line in enumerate(lines, 1):
        hashed = {"position": position, "previous": previous, "event": line["event"]}
        text = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert (line["position"], line["hash"]) == (position, previous)
    assert previous == ChainLink.objects.get(position=3).hash


def test_an_export_begins_after_a_position_or_at_a_time() -> None:
    with time_machine.travel(NOW, tick=False):
        record("a", "b")
    with time_machine.travel(NOW + timedelta(days=1), tick=False):
        record("c")
    sealing.seal()

    labels = [line["event"]["object_label"] for line in _exported("--after", "1")]
    assert labels == ["b", "c"]
    assert [line["position"] for line in _exported("--since", "2026-11-21")] == [3]
    assert _exported("--since", "2026-11-21")[0]["previous"] == ChainLink.objects.get(pk=2).hash
    assert _exported("--after", "3") == []
    for wrong in (["--after", "x"], ["--since", "yesterday"]):
        with pytest.raises(CommandError, match="write "):
            _exported(*wrong)


def test_a_deleted_event_is_null_and_does_not_end_the_export() -> None:
    events = record("a", "b")
    sealing.seal()
    tamper("DELETE FROM audit_auditevent WHERE id = %s", events[0].pk)

    first, second = _exported()

    assert (first["position"], first["event"]) == (1, None)
    assert second["event"]["object_label"] == "b"


def test_admins_page_through_the_trail_by_position() -> None:
    admin = make_user(is_platform_admin=True)
    record("a", "b", "c")
    sealing.seal()

    first = _get(admin, limit=2).json()
    rest = _get(admin, after=first["next_after"]).json()

    assert [row["event"]["object_label"] for row in first["records"]] == ["a", "b"]
    assert [row["event"]["object_label"] for row in rest["records"]] == ["c"]
    assert _get(admin, after=rest["next_after"]).json() == {"records": [], "next_after": 3}
    assert _get(admin, since=(NOW + timedelta(days=9999)).isoformat()).json()["records"] == []
    assert _get(admin, after=-1).status_code == 422
    assert _get(admin, limit=1001).status_code == 422


def test_reading_the_trail_over_rest_is_one_event_an_hour() -> None:
    admin, other = make_user(is_platform_admin=True), make_user()

    with time_machine.travel(NOW, tick=False) as clock:
        _get(admin)
        _get(admin, after=1)
        assert _get(other).status_code == 403
        clock.shift(timedelta(hours=1))
        _get(admin)

    events = AuditEvent.objects.order_by("pk").values_list(
        "at", "actor_name", "action", "object_label"
    )
    exported = (admin.username, "audit.exported", "all teams")
    assert list(events) == [(NOW, *exported), (NOW + timedelta(hours=1), *exported)]


def test_an_export_of_the_ledger_names_its_days_and_teams() -> None:
    user = make_user()
    start, end = NOW, NOW + timedelta(days=1)

    for slugs in (["vision"], ["vision"], ["b", "a"], None):
        exports.record(actor=user, team_slugs=slugs, start=start, end=end)

    events = AuditEvent.objects.order_by("pk").values_list("action", "object_label", "team_slug")
    assert list(events) == [
        ("ledger.exported", "2026-11-20 to 2026-11-21, vision", "vision"),
        ("ledger.exported", "2026-11-20 to 2026-11-21, a, b", ""),
        ("ledger.exported", "2026-11-20 to 2026-11-21, all teams", ""),
    ]
