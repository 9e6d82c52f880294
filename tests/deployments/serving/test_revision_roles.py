"""Only a revision that ran can be rolled back to; the others are called what they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from deployments.changes.services import decisions, requests
from deployments.lifecycle.services import apply_changes
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.serving.selectors import revision_roles
from deployments.serving.selectors.revision_roles import RevisionRole
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import Invalid
from tests.deployments.canaries import STEPS
from tests.deployments.signed_in import signed_in
from tests.deployments.world import World
from tests.page import page
from tests.rollout_plans import AT_ONCE

__all__ = ["signed_in"]
SignIn = Callable[[User], Client]


def leave_open(world: World, change: ChangeRequest) -> None:
    pass


def withdraw(world: World, change: ChangeRequest) -> None:
    decisions.withdraw(actor=world.member, change_id=change.pk)


def reject(world: World, change: ChangeRequest) -> None:
    decisions.reject(actor=world.lead, change_id=change.pk, comment="no")


def approve(world: World, change: ChangeRequest) -> None:
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)


def start(world: World, change: ChangeRequest) -> None:
    approve(world, change)
    apply_changes.sweep()


def expire(world: World, change: ChangeRequest) -> None:
    world.clock.move(90 * 24 * 3600)
    ChangeRequest.objects.filter(pk=change.pk).update(next_check_at=clock.now())
    apply_changes.sweep()


ENDS = [
    (leave_open, RevisionRole.REQUESTED),
    (withdraw, RevisionRole.WITHDRAWN),
    (reject, RevisionRole.REJECTED),
    (approve, RevisionRole.APPROVED),
    (start, RevisionRole.STARTING),
    (expire, RevisionRole.EXPIRED),
]


@pytest.mark.parametrize(("end", "role"), ENDS)
def test_a_revision_that_never_ran_is_no_way_back(
    world: World,
    signed_in: SignIn,
    end: Callable[[World, ChangeRequest], None],
    role: RevisionRole,
) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan=AT_ONCE,
    )

    end(world, change)

    deployment = Deployment.objects.get()
    roles = {row.number: revision_roles.roles_of(deployment)[row.pk] for row in rows(deployment)}
    assert roles == {1: RevisionRole.STABLE, 2: role}
    assert revision_roles.list_restorable(deployment) == []
    shown = page(signed_in(world.member).get(reverse("revisions", args=("vision", "detector"))))
    assert str(role) in shown.text
    assert "past" not in shown.text.split()
    assert "Roll back to this" not in shown.text
    api = APIClient()
    api.force_authenticate(world.member)
    listed = api.get(f"/api/v1/deployments/{deployment.pk}/revisions").json()
    listed = listed.get("results", listed) if isinstance(listed, dict) else listed
    assert [item["role"] for item in listed] == [str(role), "stable"]


def rows(deployment: Deployment) -> list[Revision]:
    return list(deployment.revisions.all())


def test_a_roll_back_to_it_is_refused(world: World) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan=AT_ONCE,
    )
    withdraw(world, change)

    with pytest.raises(Invalid, match="only to revisions that ran before"):
        requests.request_roll_back(
            actor=world.member, deployment_id=deployment.pk, revision_number=2
        )

    assert ChangeRequest.objects.filter(kind="roll_back").count() == 0
