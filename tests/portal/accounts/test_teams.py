from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from portal.accounts import teams
from portal.accounts.models import Membership, Role, Team
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from tests.accounts import make_membership, make_team, make_user

pytestmark = pytest.mark.django_db


def new_team(**changes: Any) -> Team:
    fields = {
        "actor": make_user(is_platform_admin=True),
        "slug": "vision",
        "name": "Vision",
        "quota_gpus": 4,
        "monthly_budget_amount": Decimal(500),
    }
    return teams.create(**(fields | changes))  # type: ignore[arg-type]  # a test's shorthand


def test_an_admin_makes_a_team() -> None:
    team = new_team()

    assert Team.objects.get() == team
    assert AuditEvent.objects.get().object_label == "vision"


@pytest.mark.parametrize("slug", ["Vision", "9lives", "a_b", "-a", "a-", "", "a" * 33, "vision\n"])
def test_a_slug_that_is_no_namespace_is_refused(slug: str) -> None:
    with pytest.raises(Invalid, match="Kubernetes namespace"):
        new_team(slug=slug)

    assert Team.objects.count() == 0


@pytest.mark.parametrize("slug", ["default", "kube-system", "slipway-gateway", "kserve"])
def test_a_namespace_that_serves_everyone_is_no_team(slug: str) -> None:
    with pytest.raises(Invalid, match="reserved for Kubernetes, the platform or a page"):
        new_team(slug=slug)

    assert Team.objects.count() == 0


def test_a_taken_slug_is_a_conflict() -> None:
    new_team()

    with pytest.raises(Conflict, match="Team vision already exists"):
        new_team()


def test_a_lead_makes_no_team() -> None:
    lead = make_membership(role=Role.LEAD).user

    with pytest.raises(Forbidden, match="Only a platform admin"):
        new_team(actor=lead)

    assert not Team.objects.filter(slug="vision").exists()
    assert AuditEvent.objects.count() == 0


def test_a_lead_sets_and_removes_members_of_their_own_team() -> None:
    lead = make_membership(role=Role.LEAD)
    make_user(username="ana")

    teams.set_member(actor=lead.user, team=lead.team, username="ana", role="viewer")
    teams.set_member(actor=lead.user, team=lead.team, username="ana", role="member")

    assert Membership.objects.get(user__username="ana").role == "member"
    assert [(e.before, e.after) for e in AuditEvent.objects.order_by("id")] == [
        ({"ana": None}, {"ana": "viewer"}),
        ({"ana": "viewer"}, {"ana": "member"}),
    ]

    teams.remove_member(actor=lead.user, team=lead.team, username="ana")
    assert not Membership.objects.filter(user__username="ana").exists()


def test_a_member_sets_no_members() -> None:
    member = make_membership()
    make_user(username="ana")

    with pytest.raises(Forbidden):
        teams.set_member(actor=member.user, team=member.team, username="ana", role="lead")

    assert not Membership.objects.filter(user__username="ana").exists()
    assert AuditEvent.objects.count() == 0


@pytest.mark.parametrize(("username", "role"), [("nobody", "member"), ("ana", "boss")])
def test_unknown_people_and_roles_are_refused(username: str, role: str) -> None:
    lead = make_membership(role=Role.LEAD)
    make_user(username="ana")

    with pytest.raises(Invalid):
        teams.set_member(actor=lead.user, team=lead.team, username=username, role=role)

    assert Membership.objects.count() == 1


def test_a_team_one_is_not_in_does_not_exist() -> None:
    with pytest.raises(NotFound):
        teams.get_visible(actor=make_user(), slug=make_team().slug)
