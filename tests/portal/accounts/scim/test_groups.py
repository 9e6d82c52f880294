"""Groups that a provider pushes give roles by the rules of its claims, and take them back."""

from __future__ import annotations

from typing import Any

import pytest

from portal.accounts.models import Membership, ProvisionedGroup, Team, User
from portal.accounts.oidc import sign_in
from portal.accounts.oidc.providers import Provider
from portal.audit.models import AuditEvent
from tests.portal.accounts.scim import requests
from tests.portal.accounts.scim.conftest import Provisioner


def roles() -> dict[str, str]:
    rows = Membership.objects.order_by("team__slug").values_list("team__slug", "role", "provider")
    assert {provider for _, _, provider in rows} <= {"lab"}
    return {team: role for team, role, _ in rows}


def test_okta_pushes_a_group_and_changes_its_members(scim: Provisioner) -> None:
    ana, group = (
        scim.create("Users", requests.OKTA_USER),
        scim.create("Groups", requests.OKTA_GROUP),
    )
    assert roles() == {}

    added = scim.send("patch", f"Groups/{group}", requests.okta_add(ana))

    assert added.json()["members"] == [{"value": ana, "display": "ana@example.org"}]
    assert roles() == {"vision": "lead"}
    event = AuditEvent.objects.get(action="team.member_set")
    assert (event.team_slug, event.reason) == ("vision", "groups of Lab")
    shown = scim.send("get", f"Users/{ana}").json()
    assert shown["groups"] == [{"value": group, "display": "vision-leads"}]
    scim.send("patch", f"Groups/{group}", requests.okta_remove(ana))
    assert roles() == {}
    scim.send("patch", f"Groups/{group}", requests.okta_replace(ana))
    assert roles() == {"vision": "lead"}
    scim.send("patch", f"Groups/{group}", requests.okta_rename(group, "slipway-nlp"))
    assert roles() == {"nlp": "member"}
    assert scim.send("delete", f"Groups/{group}").status_code == 204
    assert roles() == {}


def test_entra_s_groups_match_by_name_and_by_identifier(scim: Provisioner) -> None:
    bo, group = (
        scim.create("Users", requests.ENTRA_USER),
        scim.create("Groups", requests.ENTRA_GROUP),
    )

    scim.send("patch", f"Groups/{group}", requests.entra_add(bo))

    assert roles() == {"nlp": "viewer", "vision": "member"}
    bare = scim.send("get", f"Groups/{group}", excludedAttributes="members").json()
    assert "members" not in bare
    listed = scim.send("get", "Groups", filter='displayName eq "slipway-vision"').json()
    assert [row["id"] for row in listed["Resources"]] == [group]
    scim.send("patch", f"Groups/{group}", requests.entra_remove(bo))
    assert roles() == {}


def test_a_group_of_admins_gives_and_takes_the_platform(scim: Provisioner) -> None:
    ana = scim.create("Users", requests.OKTA_USER)
    body = {"displayName": "slipway-admins", "members": [{"value": ana}]}
    group = scim.create("Groups", body)
    assert User.objects.get(username="ana@example.org").is_platform_admin

    scim.send("put", f"Groups/{group}", {"displayName": "slipway-admins", "members": []})

    assert not User.objects.get(username="ana@example.org").is_platform_admin


def test_a_sign_in_without_the_claim_keeps_the_roles_of_groups(
    scim: Provisioner, provider: Provider
) -> None:
    ana, group = (
        scim.create("Users", requests.OKTA_USER),
        scim.create("Groups", requests.OKTA_GROUP),
    )
    scim.send("patch", f"Groups/{group}", requests.okta_add(ana))

    user = sign_in.sign_in(provider, {"sub": "00u1ab2cd", "preferred_username": "x"})

    assert roles() == {"vision": "lead"}
    claims = {"sub": "00u1ab2cd", "preferred_username": "x", "groups": ["slipway-admins"]}
    assert sign_in.sign_in(provider, claims) == user
    user.refresh_from_db()
    assert not user.is_platform_admin


def test_without_groups_the_claims_decide(scim: Provisioner, provider: Provider) -> None:
    scim.create("Users", requests.OKTA_USER)
    claims = {"sub": "00u1ab2cd", "preferred_username": "x", "groups": ["vision-leads"]}

    sign_in.sign_in(provider, claims)
    assert roles() == {"vision": "lead"}

    scim.create("Groups", {"displayName": "slipway-nlp"})
    assert roles() == {}


def test_a_role_that_a_person_gave_stays(scim: Provisioner) -> None:
    ana = scim.create("Users", requests.OKTA_USER)
    user = User.objects.get(username="ana@example.org")
    Membership.objects.create(user=user, team=Team.objects.get(slug="nlp"), role="viewer")

    group = scim.create("Groups", {"displayName": "x", "members": [{"value": ana}]})
    scim.send("delete", f"Groups/{group}")

    assert Membership.objects.get().role == "viewer"


def test_a_deleted_person_leaves_groups_and_roles(scim: Provisioner) -> None:
    ana, group = (
        scim.create("Users", requests.OKTA_USER),
        scim.create("Groups", requests.OKTA_GROUP),
    )
    scim.send("patch", f"Groups/{group}", requests.okta_add(ana))

    scim.send("delete", f"Users/{ana}")

    assert roles() == {}
    assert scim.send("get", f"Groups/{group}").json()["members"] == []


def test_removing_the_members_removes_all(scim: Provisioner) -> None:
    ana, group = (
        scim.create("Users", requests.OKTA_USER),
        scim.create("Groups", requests.OKTA_GROUP),
    )
    scim.send("patch", f"Groups/{group}", requests.okta_add(ana))

    scim.send("patch", f"Groups/{group}", requests.patch({"op": "remove", "path": "members"}))

    assert roles() == {}


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ({"op": "add", "path": "members", "value": [{"value": "nobody"}]}, "invalidValue"),
        ({"op": "add", "path": "members", "value": ["x"]}, "invalidValue"),
        ({"op": "add", "path": 'members[value eq "x"]', "value": "x"}, "invalidPath"),
        ({"op": "replace", "path": "displayName", "value": ""}, "invalidValue"),
    ],
)
def test_a_broken_change_of_a_group_changes_nothing(
    scim: Provisioner, operation: dict[str, Any], kind: str
) -> None:
    ana, group = (
        scim.create("Users", requests.OKTA_USER),
        scim.create("Groups", requests.OKTA_GROUP),
    )
    scim.send("patch", f"Groups/{group}", requests.okta_add(ana))
    first = {"op": "remove", "path": "members"}

    answer = scim.send("patch", f"Groups/{group}", requests.patch(first, operation))

    assert (answer.status_code, answer.json()["scimType"]) == (400, kind)
    assert roles() == {"vision": "lead"}
    assert ProvisionedGroup.objects.get().members.count() == 1


def test_two_groups_of_one_name_are_refused(scim: Provisioner) -> None:
    scim.create("Groups", requests.OKTA_GROUP)

    answer = scim.send("post", "Groups", {"displayName": "VISION-leads"})

    assert (answer.status_code, answer.json()["scimType"]) == (409, "uniqueness")
    assert ProvisionedGroup.objects.count() == 1
