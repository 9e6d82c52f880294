"""Who I am, my tokens, teams and members, by every role."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from portal.accounts import tokens
from portal.accounts.models import ApiToken, Membership, Role, Team, User
from portal.api.models import IdempotencyRecord
from portal.audit.models import AuditEvent
from portal.core import clock
from tests.accounts import make_membership, make_team, make_user

pytestmark = pytest.mark.django_db
ROLES = ("viewer", "member", "lead", "admin", "stranger", "anonymous")


@pytest.fixture
def vision() -> Team:
    return make_team(slug="vision")


def client_as(who: str, team: Team) -> APIClient:
    client = APIClient()
    if who != "anonymous":
        user = make_user(username=who, is_platform_admin=who == "admin")
        if who in Role.values:
            make_membership(user=user, team=team, role=who)
        client.force_authenticate(user)
    return client


@pytest.mark.parametrize(
    ("method", "path", "body", "allowed"),
    [
        ("get", "me", None, "viewer member lead admin stranger"),
        ("get", "me/tokens", None, "viewer member lead admin stranger"),
        ("post", "me/tokens", {"name": "notebook"}, "viewer member lead admin stranger"),
        ("get", "teams", None, "viewer member lead admin stranger"),
        ("post", "teams", {"slug": "audio", "name": "Audio"}, "admin"),
        ("get", "teams/vision", None, "viewer member lead admin"),
        (
            "patch",
            "teams/vision",
            {"quota_gpus": 2, "monthly_budget_amount": "10.00"},
            "admin",
        ),
        ("get", "teams/vision/members", None, "viewer member lead admin"),
        ("put", "teams/vision/members/newcomer", {"role": "viewer"}, "lead admin"),
        ("delete", "teams/vision/members/leaving", None, "lead admin"),
    ],
)
@pytest.mark.parametrize("who", ROLES)
def test_each_address_serves_exactly_those_it_may(
    who: str, method: str, path: str, body: dict[str, object] | None, allowed: str, vision: Team
) -> None:
    make_user(username="newcomer")
    make_membership(user=make_user(username="leaving"), team=vision)
    members = Membership.objects.count()

    answer = getattr(client_as(who, vision), method)(f"/api/v1/{path}", body, format="json")

    if who in allowed.split():
        assert answer.status_code in {200, 201, 204}, answer.content
        return
    hidden_from_strangers = who == "stranger" and path.startswith("teams/")
    expected = 401 if who == "anonymous" else 404 if hidden_from_strangers else 403
    assert answer.status_code == expected
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["detail"]
    assert Membership.objects.count() == members + (who in Role.values)
    assert not AuditEvent.objects.exists()
    assert not Team.objects.exclude(slug="vision").exists()


def test_me_names_my_role_in_each_team(vision: Team) -> None:
    body = client_as("lead", vision).get("/api/v1/me").json()

    assert body["username"] == "lead"
    assert body["teams"] == [{"slug": "vision", "name": "Vision", "role": "lead"}]


def test_new_token_is_shown_once_and_opens_the_api(vision: Team) -> None:
    client = client_as("member", vision)

    made = client.post("/api/v1/me/tokens", {"name": "notebook", "days": 7}, format="json").json()

    assert tokens.user_of(made["token"]) == User.objects.get(username="member")
    assert "token" not in client.get("/api/v1/me/tokens").json()[0]
    answer = APIClient().get("/api/v1/me", headers={"Authorization": f"Bearer {made['token']}"})
    assert answer.json()["username"] == "member"


def test_token_is_kept_nowhere_even_under_an_idempotency_key(vision: Team) -> None:
    client = client_as("member", vision)

    made = client.post(
        "/api/v1/me/tokens",
        {"name": "notebook"},
        format="json",
        headers={"Idempotency-Key": "again"},
    ).json()

    assert made["token"].startswith("slp_")
    assert not IdempotencyRecord.objects.exists()
    stored = [*ApiToken.objects.values(), *AuditEvent.objects.values()]
    assert made["token"] not in repr(stored)


def test_revoked_token_opens_nothing(vision: Team) -> None:
    client = client_as("member", vision)
    made = client.post("/api/v1/me/tokens", {"name": "notebook"}, format="json").json()

    assert client.delete(f"/api/v1/me/tokens/{made['id']}").status_code == 204

    answer = APIClient().get("/api/v1/me", headers={"Authorization": f"Bearer {made['token']}"})
    assert answer.status_code == 401
    assert client.delete(f"/api/v1/me/tokens/{made['id']}").status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "notebook", "days": 0}, "days"),
        ({"name": ""}, "name"),
        ({"name": "x", "days": "soon"}, "days"),
    ],
)
def test_bad_token_request_names_the_field(
    body: dict[str, object], field: str, vision: Team
) -> None:
    answer = client_as("member", vision).post("/api/v1/me/tokens", body, format="json")

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert not ApiToken.objects.exists()


def test_team_name_that_kubernetes_refuses_is_refused_here(vision: Team) -> None:
    answer = client_as("admin", vision).post(
        "/api/v1/teams", {"slug": "Vision_2", "name": "V"}, format="json"
    )

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "slug"


def test_a_token_of_one_team_shows_that_team_only(vision: Team) -> None:
    client = client_as("admin", vision)
    make_team(slug="audio")
    body = {"name": "ci", "scopes": ["upload"], "team": "vision", "days": 7}
    made = client.post("/api/v1/me/tokens", body, format="json").json()
    headers = {"Authorization": f"Bearer {made['token']}"}

    me = APIClient().get("/api/v1/me", headers=headers).json()
    hidden = APIClient().get("/api/v1/teams/audio", headers=headers)
    model = {"team": "audio", "name": "x"}
    refused = APIClient().post("/api/v1/models", model, format="json", headers=headers)

    assert (made["scopes"], made["team"]) == (["read", "upload"], "vision")
    assert [team["slug"] for team in me["teams"]] == ["vision"]
    assert me["token"] == {
        "name": "ci",
        "scopes": ["read", "upload"],
        "expires_at": made["expires_at"],
    }
    assert hidden.status_code == 404
    assert refused.status_code == 404
    listed = APIClient().get("/api/v1/teams", headers=headers).json()
    assert [team["slug"] for team in listed] == ["vision"]


def test_a_missing_scope_and_an_ended_token_are_problems_that_say_the_fix(vision: Team) -> None:
    client = client_as("lead", vision)
    made = client.post("/api/v1/me/tokens", {"name": "notebook"}, format="json").json()
    headers = {"Authorization": f"Bearer {made['token']}"}

    refused = APIClient().post("/api/v1/models", {"team": "vision", "name": "x"}, headers=headers)
    browser = APIClient().post("/api/v1/me/tokens", {"name": "more"}, headers=headers)
    ApiToken.objects.update(expires_at=clock.now())
    ended = APIClient().get("/api/v1/me", headers=headers)

    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
    assert "lacks the scope upload" in refused.json()["detail"]
    assert (browser.status_code, browser.json()["code"]) == (403, "browser_only")
    assert (ended.status_code, ended.json()["code"]) == (401, "token_expired")
    assert ended["Content-Type"] == "application/problem+json"
    assert "expired on" in ended.json()["detail"]
    assert ApiToken.objects.count() == 1
