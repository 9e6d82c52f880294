"""Provisioned people: created, found, changed, deactivated with everything that they could use."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.accounts import people, tokens
from portal.accounts.models import (
    ApiToken,
    Delegation,
    Identity,
    Membership,
    ProvisionedPerson,
    Role,
    Team,
    User,
)
from portal.accounts.oidc import sign_in
from portal.accounts.oidc.errors import SignInRefused
from portal.accounts.oidc.providers import Provider
from portal.audit.models import AuditEvent
from portal.core import clock
from tests.accounts import make_membership, make_user
from tests.portal.accounts.scim import requests
from tests.portal.accounts.scim.conftest import Provisioner


def claims(subject: str, **more: Any) -> dict[str, Any]:
    return {"sub": subject, "preferred_username": "ana@example.org", **more}


def test_okta_looks_for_a_person_and_creates_her(scim: Provisioner) -> None:
    empty = scim.send(
        "get", "Users", filter=requests.OKTA_LOOKUP, startIndex="1", count="100"
    ).json()
    assert (empty["totalResults"], empty["Resources"]) == (0, [])

    answer = scim.send("post", "Users", requests.OKTA_USER)

    made = answer.json()
    assert answer.status_code == 201
    assert answer["Content-Type"] == "application/scim+json"
    assert answer["Location"] == f"http://testserver/scim/v2/Users/{made['id']}"
    assert (made["userName"], made["externalId"], made["active"]) == (
        "ana@example.org",
        "00u1ab2cd",
        True,
    )
    user = User.objects.get(username="ana@example.org")
    assert (user.first_name, user.last_name, user.email) == ("Ana", "Beck", "ana@example.org")
    assert not user.has_usable_password()
    listed = scim.send("get", "Users", filter='userName eq "ANA@example.org"').json()
    assert [row["id"] for row in listed["Resources"]] == [made["id"]]
    event = AuditEvent.objects.get(action="person.created")
    assert (event.actor_name, event.reason) == ("scim lab", "provisioned by Lab")


def test_deactivation_ends_all_that_the_person_could_use(scim: Provisioner, admin: User) -> None:
    key = scim.create("Users", requests.OKTA_USER)
    ana, other = User.objects.get(username="ana@example.org"), make_user(username="cy")
    team = Team.objects.get(slug="vision")
    make_membership(user=ana, team=team, role=Role.LEAD)
    make_membership(user=other, team=team, role=Role.MEMBER)
    plain = tokens.create(actor=ana, name="notebook").plain
    at = clock.now()
    Delegation.objects.create(
        team=team,
        lead=ana,
        delegate=other,
        reason="away",
        starts_at=at,
        ends_at=at + timedelta(days=1),
        created_at=at,
    )
    browser = Client()
    browser.force_login(ana)
    assert browser.get("/account/security").status_code == 200

    answer = scim.send("patch", f"Users/{key}", requests.OKTA_DEACTIVATE)

    assert (answer.status_code, answer.json()["active"]) == (200, False)
    assert browser.get("/account/security").status_code == 302
    assert tokens.user_of(plain) is None
    assert ApiToken.objects.get().revoked_at is not None
    assert Delegation.objects.get().ended_at is not None
    event = AuditEvent.objects.get(action="person.deactivated")
    assert (event.actor_name, event.reason) == ("scim lab", "provisioning by Lab")
    assert event.after["tokens"] == event.after["delegations"] == event.after["sessions"] == 1

    scim.send("patch", f"Users/{key}", requests.OKTA_REACTIVATE)
    ana.refresh_from_db()
    assert ana.is_active
    assert tokens.user_of(plain) is None


@pytest.mark.parametrize(
    "body", [requests.ENTRA_DISABLE, requests.ENTRA_DISABLE_STRICT], ids=["text", "boolean"]
)
def test_entra_changes_and_disables(scim: Provisioner, body: dict[str, Any]) -> None:
    key = scim.create("Users", requests.ENTRA_USER)

    changed = scim.send("patch", f"Users/{key}", requests.ENTRA_UPDATE).json()

    assert changed["emails"][0]["value"] == "bo.cho@example.org"
    assert changed["name"]["familyName"] == "Cho-Diaz"
    disabled = scim.send("patch", f"Users/{key}", body).json()
    assert disabled["active"] is False
    assert not User.objects.get(username="bo@example.org").is_active


@pytest.mark.parametrize(
    "path", ['emails[type eq "home"].value', 'emails[type eq "other"].value', "emails[].value"]
)
def test_a_private_address_is_none_of_the_account(scim: Provisioner, path: str) -> None:
    key = scim.create("Users", requests.ENTRA_USER)
    private = requests.patch({"op": "Replace", "path": path, "value": "bo@home.example"})

    answer = scim.send("patch", f"Users/{key}", private)

    assert answer.status_code == 200
    assert [row["value"] for row in answer.json()["emails"]] == ["bo@example.org"]
    assert User.objects.get(username="bo@example.org").email == "bo@example.org"


def test_put_replaces_the_whole_person(scim: Provisioner) -> None:
    key = scim.create("Users", requests.OKTA_USER)
    whole = {**requests.OKTA_USER, "emails": [], "name": {"givenName": "Anna", "familyName": "B"}}

    answer = scim.send("put", f"Users/{key}", whole).json()

    assert (answer["name"]["givenName"], answer["emails"]) == ("Anna", [])
    assert User.objects.get(username="ana@example.org").email == ""


def test_delete_deactivates_and_forgets(scim: Provisioner) -> None:
    key = scim.create("Users", requests.OKTA_USER)

    assert scim.send("delete", f"Users/{key}").status_code == 204

    assert scim.send("get", f"Users/{key}").status_code == 404
    assert scim.send("delete", f"Users/{key}").status_code == 404
    assert not User.objects.get(username="ana@example.org").is_active


def test_a_deleted_person_comes_back_by_identifier_only(scim: Provisioner) -> None:
    """The name may belong to somebody else by then."""
    key = scim.create("Users", requests.OKTA_USER)
    scim.send("delete", f"Users/{key}")

    other = scim.send("post", "Users", {**requests.OKTA_USER, "externalId": "00uNEW"})

    assert (other.status_code, other.json()["scimType"]) == (409, "uniqueness")
    assert not User.objects.get(username="ana@example.org").is_active
    assert scim.create("Users", requests.OKTA_USER) == key
    assert User.objects.get(username="ana@example.org").is_active


def test_an_account_of_the_portal_is_never_taken_over(scim: Provisioner) -> None:
    make_user(username="ana@example.org", email="ana@example.org")

    answer = scim.send("post", "Users", requests.OKTA_USER)

    assert (answer.status_code, answer.json()["scimType"]) == (409, "uniqueness")
    assert not ProvisionedPerson.objects.exists()


def test_whoever_signed_in_with_the_provider_is_adopted(
    scim: Provisioner, provider: Provider
) -> None:
    user = sign_in.sign_in(provider, claims("00u1ab2cd"))

    scim.create("Users", requests.OKTA_USER)

    assert ProvisionedPerson.objects.get().user == user


def test_a_provisioned_person_signs_in_by_the_identifier(
    scim: Provisioner, provider: Provider
) -> None:
    scim.create("Users", requests.OKTA_USER)
    provisioned = User.objects.get(username="ana@example.org")

    assert sign_in.sign_in(provider, claims("00u1ab2cd")) == provisioned
    assert Identity.objects.get().user == provisioned
    with pytest.raises(SignInRefused) as refused:
        sign_in.sign_in(provider, claims("somebody else"))
    assert refused.value.code == "account_exists"


def test_a_changed_name_or_address_is_in_the_audit_trail(scim: Provisioner) -> None:
    """Mail goes to that address, so it must be known who changed it."""
    key = scim.create("Users", requests.OKTA_USER)
    created = AuditEvent.objects.latest("id")
    change = requests.patch({"op": "replace", "value": {"name": {"familyName": "Bek"}}})

    for _ in range(2):
        assert scim.send("patch", f"Users/{key}", change).status_code == 200

    event = AuditEvent.objects.get(pk__gt=created.pk)
    assert (event.action, event.actor_name, event.object_label, event.reason) == (
        "person.provisioned",
        "scim lab",
        "ana@example.org",
        "provisioned by Lab",
    )
    assert event.before == {
        "first_name": "Ana",
        "last_name": "Beck",
        "email": "ana@example.org",
    }
    assert event.after == {**event.before, "last_name": "Bek"}


def test_an_admin_s_deactivation_is_not_undone(scim: Provisioner, admin: User) -> None:
    key = scim.create("Users", requests.OKTA_USER)
    people.deactivate(actor=admin, username="ana@example.org")

    answer = scim.send("patch", f"Users/{key}", requests.OKTA_REACTIVATE)

    assert answer.json()["active"] is False
    assert not User.objects.get(username="ana@example.org").is_active


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"userName": ""}, 400, "invalidValue"),
        ({"userName": "a b"}, 400, "invalidValue"),
        ({"userName": "slipway"}, 400, "invalidValue"),
        ({"userName": "x" * 151}, 400, "invalidValue"),
        ({"userName": 7}, 400, "invalidValue"),
        ({"userName": "x", "active": "perhaps"}, 400, "invalidValue"),
        ({"userName": "x", "emails": "x@example.org"}, 400, "invalidValue"),
        ({"userName": "x", "emails": [{"value": "no address"}]}, 400, "invalidValue"),
        ({"userName": "x", "name": "Ana"}, 400, "invalidValue"),
        ([], 400, "invalidSyntax"),
    ],
)
def test_what_cannot_be_a_person_is_refused(
    scim: Provisioner, body: Any, status: int, kind: str
) -> None:
    before = User.objects.count()

    answer = scim.send("post", "Users", body)

    assert (answer.status_code, answer.json()["scimType"]) == (status, kind)
    assert answer.json()["status"] == str(status)
    assert (User.objects.count(), ProvisionedPerson.objects.count()) == (before, 0)


@pytest.mark.parametrize(
    "operations",
    [
        None,
        [],
        "x",
        [{"op": "move", "path": "active", "value": False}],
        [{"op": "remove"}],
        [{"op": "replace", "value": "x"}],
        [{"op": "replace", "path": 7, "value": "x"}],
        ["x"],
    ],
)
def test_a_broken_patch_changes_nothing(scim: Provisioner, operations: Any) -> None:
    key = scim.create("Users", requests.OKTA_USER)
    before = ProvisionedPerson.objects.values().get()

    answer = scim.send("patch", f"Users/{key}", {"Operations": operations})

    assert answer.status_code == 400
    assert ProvisionedPerson.objects.values().get() == before


@pytest.mark.parametrize(
    "text", ["userName", 'userName co "a"', 'title eq "x"', 'userName eq "a" or id eq "b"']
)
def test_other_filters_are_refused_by_name(scim: Provisioner, text: str) -> None:
    answer = scim.send("get", "Users", filter=text)

    assert (answer.status_code, answer.json()["scimType"]) == (400, "invalidFilter")


def test_pages_are_bounded(scim: Provisioner) -> None:
    for name in ("a", "b", "c"):
        scim.create("Users", {"userName": name})

    page = scim.send("get", "Users", startIndex="2", count="1").json()

    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (3, 2, 1)
    assert [row["userName"] for row in page["Resources"]] == ["b"]
    assert scim.send("get", "Users", count="x").status_code == 400


def test_a_person_of_another_provider_does_not_exist(scim: Provisioner) -> None:
    key = scim.create("Users", requests.OKTA_USER)
    ProvisionedPerson.objects.update(provider="other")

    assert scim.send("get", f"Users/{key}").status_code == 404
    assert scim.send("patch", f"Users/{key}", requests.OKTA_DEACTIVATE).status_code == 404
    assert User.objects.get(username="ana@example.org").is_active


def test_the_profile_alone_gives_no_role(scim: Provisioner) -> None:
    scim.create(
        "Users", {**requests.OKTA_USER, "groups": [{"value": "x", "display": "vision-leads"}]}
    )

    assert not Membership.objects.exists()
