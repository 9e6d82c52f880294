from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.test import Client

from fleet.clusters.selectors.clusters import list_clusters
from portal.accounts import teams, tokens
from portal.accounts.models import ApiToken, Membership, Role, Team, User
from portal.accounts.policy import SYSTEM
from portal.audit.models import AuditEvent
from tests.page import page

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def vision() -> Team:
    return teams.create(
        actor=SYSTEM, slug="vision", name="Vision", quota_gpus=4, monthly_budget_amount=Decimal(100)
    )


@pytest.fixture
def people(vision: Team) -> dict[str, User]:
    users = {name: User.objects.create_user(name) for name in ("viewer", "member", "lead")}
    for name, user in users.items():
        Membership.objects.create(user=user, team=vision, role=Role(name))
    users["admin"] = User.objects.create_user("admin", is_platform_admin=True)
    users["stranger"] = User.objects.create_user("stranger")
    return users


def test_token_is_shown_once_and_works(people: dict[str, User]) -> None:
    browser = signed_in(people["member"])

    made = browser.post("/account/tokens", {"name": "notebook", "days": "30"})
    plain = re.search(r"slp_[\w-]+", made.content.decode())

    assert made.status_code == 200
    assert plain is not None
    assert tokens.user_of(plain.group()) == people["member"]
    assert plain.group() not in browser.get("/account/tokens").content.decode()
    assert made["Cache-Control"].startswith("max-age=0, no-cache, no-store")


def test_token_without_a_name_keeps_what_was_typed(people: dict[str, User]) -> None:
    answer = signed_in(people["member"]).post("/account/tokens", {"name": "", "days": "30"})

    assert answer.status_code == 422
    assert page(answer).field("days").value == "30"
    assert not ApiToken.objects.exists()


def test_token_of_someone_else_cannot_be_revoked(people: dict[str, User]) -> None:
    row = tokens.create(actor=people["lead"], name="ci").row

    answer = signed_in(people["member"]).post(f"/account/tokens/{row.pk}/revoke")
    row.refresh_from_db()

    assert answer.status_code == 404
    assert row.revoked_at is None


@pytest.mark.parametrize(
    ("name", "status"),
    [("viewer", 403), ("member", 403), ("lead", 200), ("admin", 200), ("stranger", 403)],
)
def test_audit_and_admin_are_for_leads_and_admins(
    name: str, status: int, people: dict[str, User]
) -> None:
    browser = signed_in(people[name])

    assert browser.get("/audit").status_code == status
    assert browser.get("/admin").status_code == status
    links = page(browser.get("/account/tokens")).links.values()
    assert ("/audit" in links) == (status == 200)


@pytest.mark.parametrize("name", ["viewer", "member", "lead", "stranger"])
def test_limits_are_for_platform_admins(name: str, people: dict[str, User], vision: Team) -> None:
    events = AuditEvent.objects.count()

    answer = signed_in(people[name]).post(
        "/admin/teams/vision/limits", {"quota_gpus": "99", "monthly_budget_amount": "1"}
    )
    vision.refresh_from_db()

    assert answer.status_code == (404 if name == "stranger" else 403)
    assert vision.quota_gpus == 4
    assert AuditEvent.objects.count() == events


def test_admin_sets_limits_and_the_audit_page_shows_before_and_after(
    people: dict[str, User], vision: Team
) -> None:
    browser = signed_in(people["admin"])

    browser.post("/admin/teams/vision/limits", {"quota_gpus": "9", "monthly_budget_amount": "250"})
    trail = page(browser.get("/audit?action=team.limits_set")).part("audit-stream")

    assert "4 → 9" in trail.terms("quota gpus")
    assert "created team" not in trail.text


def test_audit_filters_come_from_the_address(people: dict[str, User]) -> None:
    browser = signed_in(people["admin"])

    assert "No matching events" in browser.get("/audit?q=nobody-did-this").content.decode()
    assert "created team" in browser.get("/audit?q=vision&start=nonsense").content.decode()
    fragment = page(browser.get("/audit?q=vision", headers={"HX-Request": "true"}))
    assert not fragment.is_whole_page
    assert "created team" in fragment.part("audit-stream").text


def test_audit_pages_do_not_overlap(people: dict[str, User], vision: Team) -> None:
    for number in range(60):
        tokens.create(actor=people["admin"], name=f"t{number}")
    browser = signed_in(people["admin"])

    first = page(browser.get("/audit?action=token.made")).part("audit-stream")
    (older,) = {to for to in first.links.values() if "before=" in to}
    second = page(browser.get(older)).part("audit-stream")

    assert first.text.count("created an API token") == 50
    assert second.text.count("created an API token") == 10


def test_lead_adds_a_member_and_unknown_people_are_explained(
    people: dict[str, User], vision: Team
) -> None:
    browser = signed_in(people["lead"])

    added = browser.post("/admin/teams/vision/members", {"username": "stranger", "role": "member"})
    wrong = browser.post("/admin/teams/vision/members", {"username": "ghost", "role": "member"})

    assert added.status_code == 302
    assert Membership.objects.filter(user=people["stranger"], team=vision).exists()
    assert wrong.status_code == 422
    assert "must sign in once before" in wrong.content.decode()
    assert "ghost" in [field.value for field in page(wrong).fields("username")]


def test_team_page_does_not_exist_for_strangers(people: dict[str, User]) -> None:
    assert signed_in(people["stranger"]).get("/admin/teams/vision").status_code == 404
    assert signed_in(people["member"]).get("/admin/teams/vision").status_code == 403


def test_new_team_with_a_name_kubernetes_refuses_keeps_the_form(people: dict[str, User]) -> None:
    answer = signed_in(people["admin"]).post(
        "/admin",
        {"slug": "Bad_Name", "name": "Bad", "quota_gpus": "1", "monthly_budget_amount": "0"},
    )

    assert answer.status_code == 422
    assert page(answer).field("slug").value == "Bad_Name"
    assert not Team.objects.filter(name="Bad").exists()


def test_jump_finds_pages_and_hides_what_is_not_visible(people: dict[str, User]) -> None:
    browser = signed_in(people["stranger"])

    text = page(browser.get("/jump?q=co", headers={"HX-Request": "true"}))
    nothing = browser.get("/jump?q=vision", headers={"HX-Request": "true"}).content.decode()

    assert "/costs" in text.links.values()
    assert not text.is_whole_page
    assert "No results for" in nothing


def test_jump_with_one_hit_goes_there(people: dict[str, User]) -> None:
    answer = signed_in(people["member"]).get("/jump?q=costs")

    assert answer.status_code == 302
    assert answer["Location"] == "/costs"


def test_cluster_is_registered_and_its_test_explains_what_is_wrong(
    people: dict[str, User],
) -> None:
    browser = signed_in(people["admin"])
    form = {
        "name": "lab",
        "kind": "kubeconfig",
        "kubeconfig_path": "/no/such/file",
        "region": "us-east-1",
        "gateway_url": "http://127.0.0.1:1",
    }

    browser.post("/admin/clusters/new", form)
    cluster = list_clusters()[0]
    tested = browser.post(f"/admin/clusters/{cluster.id}/test").content.decode()

    assert cluster.name == "lab"
    assert "Connection test" in tested
    assert "fails:" in tested
    assert "/no/such/file" in tested


def test_cluster_without_its_kubeconfig_is_refused_beside_the_field(
    people: dict[str, User],
) -> None:
    form = {"name": "lab", "kind": "kubeconfig", "region": "r", "gateway_url": "http://h"}

    answer = signed_in(people["admin"]).post("/admin/clusters/new", form)

    assert answer.status_code == 422
    assert (
        page(answer).problem("kubeconfig_path")
        == "enter the path of a kubeconfig file that the portal can read"
    )
    assert list_clusters() == []


def test_prices_are_loaded_by_a_platform_admin_only(people: dict[str, User]) -> None:
    refused = signed_in(people["lead"]).post("/admin/prices/load")
    browser = signed_in(people["admin"])
    browser.post("/admin/prices/load")

    assert refused.status_code == 403
    assert "g5.xlarge" in browser.get("/admin/prices").content.decode()
    assert "loaded prices" in browser.get("/audit").content.decode()


def test_page_of_a_team_makes_rotates_and_revokes_a_service_account(
    people: dict[str, User], vision: Team
) -> None:
    browser = signed_in(people["lead"])
    address = "/admin/teams/vision/service-accounts"

    made = browser.post(address, {"name": "ci", "scopes": ["request"], "days": "30"})
    row = ApiToken.objects.get()
    rotated = browser.post(f"{address}/ci/rotate", {"token_id": row.pk, "overlap_hours": "24"})
    shown = browser.get("/admin/teams/vision")
    revoked = browser.post(f"{address}/ci/revoke")

    for answer in (made, rotated):
        assert answer.status_code == 200
        assert answer["Cache-Control"].startswith("max-age=0, no-cache, no-store")
    plain = [re.search(r"slp_[\w-]{20,}", answer.content.decode()) for answer in (made, rotated)]
    assert all(plain)
    assert len({match.group() for match in plain if match}) == 2
    assert "slp_" not in shown.content.decode()
    assert "old token" in page(shown).part("service-accounts").text
    assert revoked.status_code == 302
    (row_of_it,) = page(browser.get("/admin/teams/vision")).part("service-accounts").rows
    assert row_of_it["Expires"].lower() == "revoked"


def test_a_refused_service_account_keeps_what_was_typed(
    people: dict[str, User], vision: Team
) -> None:
    answer = signed_in(people["lead"]).post(
        "/admin/teams/vision/service-accounts", {"name": "Bad Name", "days": "30"}
    )

    assert answer.status_code == 422
    assert page(answer).field("name").value == "Bad Name"
    assert not ApiToken.objects.exists()


def test_a_link_of_the_client_ticks_scopes_and_refused_input_is_kept(
    people: dict[str, User],
) -> None:
    browser = signed_in(people["member"])

    shown = page(browser.get("/account/tokens?scopes=upload,decide,nonsense"))
    refused = browser.post(
        "/account/tokens", {"name": "ci", "scopes": ["decide"], "days": "90", "team": "vision"}
    )

    chosen = [scope.value for scope in shown.fields("scopes") if scope.is_chosen]
    assert chosen == ["upload", "decide"]
    assert shown.field("days").value == "1"
    assert refused.status_code == 422
    assert "expires after 1 day" in page(refused).text
    assert page(refused).field("team").value == "vision"
    assert not ApiToken.objects.exists()
