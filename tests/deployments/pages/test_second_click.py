"""A second click on what was decided says who did it, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from deployments.changes.services import decisions, requests
from deployments.models import Rollout
from deployments.rollouts.services import actions
from portal.accounts.models import User
from portal.core.errors import AlreadyDone
from tests.deployments.world import World
from tests.page import page

ONE = "/vision/deployments/detector"
SignIn = Callable[[User], Client]


def test_approving_what_is_approved_says_by_whom_and_when(world: World, signed_in: SignIn) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    path, client = f"/approvals/{change.pk}", signed_in(world.lead2)
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    world.clock.move(125)

    sent = client.post(path, {"decision": "approve", "evidence_hash": change.evidence_hash})

    assert (sent.status_code, sent["Location"]) == (302, path)
    assert "Already approved by lead, 2 min ago." in page(client.get(path)).text


def test_rejecting_what_is_rejected_says_so(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    decisions.reject(actor=world.lead, change_id=change.pk, comment="too large")
    world.clock.move(7)

    with pytest.raises(AlreadyDone, match=r"^Already rejected by lead, 7 s ago\.$"):
        decisions.reject(actor=world.lead2, change_id=change.pk, comment="too large")


def test_what_was_withdrawn_names_nobody_who_decided(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    decisions.withdraw(actor=world.member, change_id=change.pk)

    with pytest.raises(AlreadyDone, match=r"^Already withdrawn, just now\.$"):
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash="")


@pytest.mark.parametrize("action", ["promote", "promote_fully"])
def test_promoting_what_is_promoted_says_by_whom(
    world: World, rollout: Rollout, signed_in: SignIn, action: str
) -> None:
    client, shown = signed_in(world.lead2), rollout.evidence_hash
    act = getattr(actions, action)
    act(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown)
    world.clock.move(3 * 60)

    sent = client.post(
        f"{ONE}/rollout", {"action": action, "evidence_hash": shown, "confirmed": "yes"}
    )

    assert sent.status_code == 302
    assert "Already promoted by lead, 3 min ago." in page(client.get(f"{ONE}/rollout")).text
    assert Rollout.objects.get().step_index <= 1
