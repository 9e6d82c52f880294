"""Approvals where the platform asks for a recent sign-in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from deployments.changes.services import requests
from deployments.models import Approval, ChangeRequest
from deployments.states import ChangeState
from portal.accounts import sign_ins, tokens
from portal.accounts.local import second_factor, totp
from portal.accounts.local.step_up import StepUpRequired
from portal.accounts.scopes import Scope
from portal.audit.models import AuditEvent
from tests.deployments.world import World
from tests.page import page

PASSWORD = "two brown otters swim"


@pytest.fixture
def change(world: World, settings: Any) -> ChangeRequest:
    cache.clear()
    settings.SLIPWAY_STEP_UP_MINUTES = 15
    world.lead.set_password(PASSWORD)
    world.lead.save()
    return requests.request_deploy(actor=world.member, draft=world.draft())


@pytest.fixture
def lead(change: ChangeRequest) -> Client:
    browser = Client()
    browser.post("/sign-in", {"username": "lead", "password": PASSWORD})
    return browser


def decide(client: Client, change: ChangeRequest, decision: str = "approve") -> Any:
    data = {
        "decision": decision,
        "evidence_hash": change.evidence_hash,
        "comment": "A <b>reason</b>",
    }
    return client.post(f"/approvals/{change.pk}", data)


def confirm(client: Client, refused: Any, answer: str) -> Any:
    data = {name: page(refused).hidden(name) for name in ("next", "kept")}
    return client.post("/confirm", {**data, "answer": answer})


def test_a_sign_in_of_a_moment_ago_is_enough(lead: Client, change: ChangeRequest) -> None:
    assert decide(lead, change).status_code == 302

    change.refresh_from_db()
    assert change.state == ChangeState.APPROVED


def test_an_older_one_is_confirmed_and_nothing_that_was_typed_is_lost(
    world: World, lead: Client, change: ChangeRequest
) -> None:
    world.clock.at += timedelta(minutes=16)
    audited = set(AuditEvent.objects.values_list("pk", flat=True))

    asked = decide(lead, change)
    wrong = confirm(lead, asked, "wrong")
    right = confirm(lead, wrong, PASSWORD)
    form = lead.get(right["Location"])

    assert (asked.status_code, wrong.status_code, right.status_code) == (403, 422, 302)
    assert "Confirm that it is you" in page(asked).text
    assert right["Location"] == f"/approvals/{change.pk}"
    assert "Confirmed. Nothing was sent yet" in page(form).text
    assert "A &lt;b&gt;reason&lt;/b&gt;" in form.content.decode()
    assert not Approval.objects.exists()
    added = AuditEvent.objects.exclude(pk__in=audited).order_by("pk")
    assert [(row.action, *row.after.values()) for row in added] == [
        ("session.refused", "wrong password", "127.0.0.1"),
        ("session.began", "confirmation", "127.0.0.1"),
    ]
    assert decide(lead, change).status_code == 302
    assert Approval.objects.get().comment == "A <b>reason</b>"


def test_with_an_authenticator_app_it_takes_a_code(
    world: World, lead: Client, change: ChangeRequest, settings: Any
) -> None:
    minutes = settings.SLIPWAY_STEP_UP_MINUTES
    # Adding the app asks for a confirmation of its own.
    settings.SLIPWAY_STEP_UP_MINUTES = 0
    second_factor.start(actor=world.lead)
    key = second_factor.pending_key(world.lead)
    now = int(world.clock.at.timestamp())
    second_factor.confirm(actor=world.lead, code=totp.code_at(key, now))
    settings.SLIPWAY_STEP_UP_MINUTES = minutes
    world.clock.at += timedelta(minutes=16)
    asked = decide(lead, change)

    wrong = confirm(lead, asked, PASSWORD)
    right = confirm(lead, wrong, totp.code_at(key, now + 16 * 60))

    assert (wrong.status_code, right.status_code) == (422, 302)
    assert decide(lead, change).status_code == 302


def test_rejecting_and_withdrawing_need_none(
    world: World, lead: Client, change: ChangeRequest
) -> None:
    world.clock.at += timedelta(minutes=16)

    assert decide(lead, change, "reject").status_code == 302


def test_an_emergency_override_needs_it_as_well(
    world: World, lead: Client, change: ChangeRequest
) -> None:
    world.clock.at += timedelta(minutes=16)

    assert decide(lead, change, "emergency").status_code == 403
    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED


def test_guessing_the_password_is_limited_and_leads_nowhere_else(
    world: World, lead: Client, change: ChangeRequest
) -> None:
    world.clock.at += timedelta(minutes=16)
    for _ in range(sign_ins.OF_DEVICE.max_count):
        assert lead.post("/confirm", {"answer": "wrong"}).status_code == 422
    assert lead.post("/confirm", {"answer": PASSWORD}).status_code == 429

    world.clock.at += timedelta(minutes=16)
    answer = lead.post("/confirm", {"answer": PASSWORD, "next": "https://evil.example/"})
    assert answer["Location"] == "/"


def test_the_session_of_a_browser_does_not_get_around_it_by_rest(
    world: World, lead: Client, change: ChangeRequest
) -> None:
    world.clock.at += timedelta(minutes=16)

    answer = lead.post(
        f"/api/v1/changes/{change.pk}/approve",
        {"evidence_hash": change.evidence_hash},
        content_type="application/json",
    )

    assert (answer.status_code, answer.json()["code"]) == (403, "step_up_required")
    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED


def test_a_token_decides_for_as_long_as_a_sign_in_does(
    world: World, lead: Client, change: ChangeRequest
) -> None:
    world.lead.authenticated_at = world.clock.at
    made = tokens.create(actor=world.lead, name="terminal", days=1, scopes=[Scope.DECIDE])
    world.clock.at += timedelta(minutes=16)

    answer = Client().post(
        f"/api/v1/changes/{change.pk}/approve",
        {"evidence_hash": change.evidence_hash},
        content_type="application/json",
        headers={"Authorization": f"Bearer {made.plain}"},
    )

    assert (answer.status_code, answer.json()["code"]) == (403, "step_up_required")
    with pytest.raises(StepUpRequired):
        tokens.create(actor=world.lead, name="late", days=1, scopes=[Scope.DECIDE])
