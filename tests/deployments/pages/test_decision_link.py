"""The single-use link of a message: for one person, once, for what the message showed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Rollout
from deployments.rollouts.services import actions
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.notifications import links, services
from portal.notifications.links import DecisionRequest
from portal.notifications.models import Channel, DecisionLink
from tests import page as pages
from tests.deployments.signed_in import STEPS
from tests.deployments.world import World

SignIn = Callable[[User], Client]


def _link_to(world: World, user: User, question: DecisionRequest, path: str) -> str:
    Channel.objects.create(
        user=user, name="me", kind="slack", hint="", created_by=user, created_at=world.clock.at
    )
    with transaction.atomic():
        services.notify(
            team=world.team,
            event="rollout.waits",
            subject="detector may be promoted",
            message="All guards pass.",
            path=path,
            data={"decide": question.to_json()},
        )
    link = DecisionLink.objects.filter(user=user).first()
    assert link is not None
    return links.path_of(link)


def _open(client: Client, address: str) -> str:
    """The address without the token, to which the link leads."""
    answer = client.get(address)
    assert answer.status_code == 302
    return str(answer["Location"])


@pytest.fixture
def address(world: World, rollout: Rollout) -> str:
    question = DecisionRequest(
        kind="rollout",
        object_id=rollout.pk,
        requester_id=world.member.pk,
        evidence_hash=rollout.evidence_hash,
        step_index=rollout.step_index,
    )
    return _link_to(world, world.lead, question, "/vision/deployments/detector/rollout")


def test_looking_shows_the_evidence_and_changes_nothing(
    world: World, rollout: Rollout, address: str, signed_in: SignIn
) -> None:
    audited = AuditEvent.objects.count()
    client = signed_in(world.lead)

    pages = [client.get(_open(client, address)).content.decode() for _ in range(2)]

    assert "Promote <small>10 → 50%" in pages[1]
    assert "detector:1 → detector:2" in pages[1]
    rollout.refresh_from_db()
    assert (rollout.step_index, rollout.phase) == (0, "running")
    assert DecisionLink.objects.get().used_at is None
    assert AuditEvent.objects.count() == audited


def test_the_person_promotes_once(
    world: World, rollout: Rollout, address: str, signed_in: SignIn
) -> None:
    client = signed_in(world.lead)

    page = _open(client, address)
    done = client.post(page, {"choice": "promote", "comment": ""})
    again = client.post(page, {"choice": "abort", "comment": ""})

    assert (done.status_code, done["Location"]) == (302, "/vision/deployments/detector/rollout")
    assert again.status_code == 409
    assert "This link has been used: you chose to promote." in again.content.decode()
    rollout.refresh_from_db()
    assert (rollout.step_index, rollout.phase) == (1, "running")


def test_the_person_aborts_and_says_why(
    world: World, rollout: Rollout, address: str, signed_in: SignIn
) -> None:
    client = signed_in(world.lead)

    client.post(_open(client, address), {"choice": "abort", "comment": "wrong dataset"})

    rollout.refresh_from_db()
    assert (rollout.phase, rollout.phase_reason) == ("aborting", "wrong dataset")


@pytest.mark.parametrize(("person", "status"), [("member", 403), ("admin", 403), ("stranger", 403)])
def test_the_link_of_another_is_refused(
    world: World, rollout: Rollout, address: str, signed_in: SignIn, person: str, status: int
) -> None:
    client = signed_in(getattr(world, person))

    page = _open(client, address)

    assert client.get(page).status_code == status
    assert client.post(page, {"choice": "promote", "comment": ""}).status_code == status

    rollout.refresh_from_db()
    assert rollout.step_index == 0


def test_whoever_is_not_signed_in_signs_in_first(
    world: World, rollout: Rollout, address: str
) -> None:
    client = Client()

    page = _open(client, address)
    response = client.get(page)
    posted = client.post(page, {"choice": "promote", "comment": ""})

    assert (response.status_code, response["Location"]) == (302, f"/sign-in?next={page}")
    assert posted.status_code == 401
    assert pages.page(posted).hidden("next") == page
    rollout.refresh_from_db()
    assert rollout.step_index == 0
    client.force_login(world.lead)
    assert client.get(page).status_code == 200


def test_page_of_a_link_needs_the_link_in_the_same_session(
    world: World, rollout: Rollout, address: str, signed_in: SignIn
) -> None:
    page = _open(Client(), address)
    client = signed_in(world.lead)

    assert client.get(page).status_code == 404
    assert client.post(page, {"choice": "promote", "comment": ""}).status_code == 404
    assert client.post(address, {"choice": "promote", "comment": ""}).status_code == 405
    rollout.refresh_from_db()
    assert rollout.step_index == 0


def test_the_token_is_in_no_page_address_session_or_log(
    world: World, rollout: Rollout, address: str, signed_in: SignIn, caplog: Any
) -> None:
    token = address.rpartition("/")[2]
    client = signed_in(world.lead)

    answer = client.get(address)
    page = client.get(answer["Location"])
    with caplog.at_level("DEBUG"):
        assert client.get(f"/decide/{token[:-1]}").status_code == 404
        assert client.post(address).status_code == 405
        logging.getLogger("gunicorn.access").info("%(r)s", {"r": f"GET {address} HTTP/1.1"})

    assert token not in answer["Location"]
    assert answer["Referrer-Policy"] == "no-referrer"
    assert "no-store" in answer["Cache-Control"]
    assert token not in page.content.decode()
    assert token not in str(dict(client.session))
    assert "/decide/[redacted]" in caplog.text
    assert token[:-1] not in caplog.text


def test_an_invented_link_is_not_found(world: World, rollout: Rollout, signed_in: SignIn) -> None:
    assert signed_in(world.lead).get("/decide/" + "A" * 43).status_code == 404


def test_an_expired_link_is_explained(
    world: World, rollout: Rollout, address: str, signed_in: SignIn
) -> None:
    world.clock.move(timedelta(hours=24).total_seconds())
    client = signed_in(world.lead)

    opened = _open(client, address)
    page = client.get(opened)
    refused = client.post(opened, {"choice": "abort", "comment": ""})

    assert "This link has expired." in page.content.decode()
    assert refused.status_code == 409
    rollout.refresh_from_db()
    assert rollout.phase == "running"


def test_a_changed_verdict_blocks_a_promotion_but_not_an_abort(
    world: World, rollout: Rollout, address: str, signed_in: SignIn
) -> None:
    Rollout.objects.filter(pk=rollout.pk).update(evidence_hash="f" * 64)
    client = signed_in(world.lead)

    opened = _open(client, address)
    page = client.get(opened).content.decode()
    refused = client.post(opened, {"choice": "promote", "comment": ""})

    assert "A verdict changed after this message was sent." in page
    assert refused.status_code == 409
    rollout.refresh_from_db()
    assert (rollout.step_index, DecisionLink.objects.get().used_at) == (0, None)
    assert client.post(opened, {"choice": "abort", "comment": ""}).status_code == 302


def test_a_step_that_moved_on_is_not_promoted_twice(
    world: World, rollout: Rollout, address: str, signed_in: SignIn
) -> None:
    actions.promote(actor=world.admin, rollout_id=rollout.pk, evidence_hash=rollout.evidence_hash)

    client = signed_in(world.lead)
    refused = client.post(_open(client, address), {"choice": "promote", "comment": ""})

    assert refused.status_code == 409
    assert "moved to another step" in refused.content.decode()
    rollout.refresh_from_db()
    assert rollout.step_index == 1


def test_what_the_service_refuses_leaves_the_link_usable(
    world: World, rollout: Rollout, address: str, signed_in: SignIn
) -> None:
    """For example someone who is no lead any more by the time of the click."""
    world.team.memberships.filter(user=world.lead).update(role="member")
    client = signed_in(world.lead)

    refused = client.post(_open(client, address), {"choice": "promote", "comment": ""})

    assert refused.status_code == 403
    assert DecisionLink.objects.get().used_at is None
    rollout.refresh_from_db()
    assert rollout.step_index == 0


def test_a_request_is_approved_by_link(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    question = DecisionRequest(
        kind="change",
        object_id=change.pk,
        requester_id=world.member.pk,
        evidence_hash=change.evidence_hash,
    )
    address = _link_to(world, world.lead, question, f"/approvals/{change.pk}")
    client = signed_in(world.lead)

    opened = _open(client, address)
    page = client.get(opened).content.decode()
    refused = client.post(opened, {"choice": "reject", "comment": ""})
    done = client.post(opened, {"choice": "approve", "comment": ""})

    assert "requested by" in page
    assert refused.status_code == 422
    assert done.status_code == 302
    assert ChangeRequest.objects.get(pk=change.pk).state in ("approved", "applying")


def test_the_requester_gets_no_link(world: World, rollout: Rollout) -> None:
    Channel.objects.create(
        user=world.lead,
        name="me",
        kind="slack",
        hint="",
        created_by=world.lead,
        created_at=world.clock.at,
    )
    question = DecisionRequest(
        kind="rollout", object_id=rollout.pk, requester_id=world.lead.pk, evidence_hash="0" * 64
    )

    with transaction.atomic():
        services.notify(
            team=world.team,
            event="rollout.waits",
            subject="s",
            message="w",
            path="/",
            data={"decide": question.to_json()},
        )

    assert DecisionLink.objects.count() == 0
