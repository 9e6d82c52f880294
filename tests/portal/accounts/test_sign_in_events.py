"""Sign-ins in the audit trail: who, how, from where; what was typed is not kept."""

from __future__ import annotations

import json

import pytest
from django.core.cache import cache
from django.test import Client

from portal.accounts import sign_in_events, sign_ins
from portal.accounts.models import User
from portal.audit.models import AuditEvent

pytestmark = pytest.mark.django_db
PASSWORD = "two brown otters swim"


@pytest.fixture(autouse=True)
def ana() -> User:
    cache.clear()
    return User.objects.create_user("ana", "ana@example.org", PASSWORD)


def sign_in(password: str, *, username: str = "ana") -> int:
    browser = Client(REMOTE_ADDR="10.0.0.7")
    return browser.post("/sign-in", {"username": username, "password": password}).status_code


def events() -> list[tuple[str, str, str, dict[str, str]]]:
    rows = AuditEvent.objects.order_by("id")
    return list(rows.values_list("action", "actor_name", "object_label", "after"))


def test_a_sign_in_and_a_wrong_password_are_events() -> None:
    assert [sign_in("three grey herons"), sign_in(PASSWORD)] == [200, 302]

    assert events() == [
        ("session.refused", "slipway", "ana", {"reason": "wrong password", "address": "10.0.0.7"}),
        ("session.began", "ana", "ana", {"method": "password", "address": "10.0.0.7"}),
    ]
    assert "herons" not in json.dumps(list(AuditEvent.objects.values()), default=str)


def test_a_deactivated_account_is_named_as_such(ana: User) -> None:
    User.objects.filter(pk=ana.pk).update(is_active=False)

    assert sign_in(PASSWORD) == 200
    assert [after["reason"] for *_, after in events()] == ["deactivated"]


def test_a_name_that_nobody_has_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """People type passwords into the field of the name."""
    logged: list[str] = []
    monkeypatch.setattr(
        sign_in_events.logger, "warning", lambda line, *args: logged.append(line % args)
    )

    assert sign_in("x", username="my secret password") == 200

    assert events() == []
    assert logged == ["A sign-in from 10.0.0.7 was refused: nobody has that name"]


def test_attempts_beyond_the_limit_add_no_events() -> None:
    """Otherwise whoever reaches the page could fill the trail."""
    statuses = [sign_in("wrong") for _ in range(sign_ins.OF_PAIR.max_count + 5)]

    assert statuses.count(429) == 5
    assert len(events()) == sign_ins.OF_PAIR.max_count
