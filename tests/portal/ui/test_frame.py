from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import URLResolver, get_resolver

from portal.accounts.models import SLUG, Membership, Role, Team, User
from portal.accounts.teams import RESERVED_ADDRESSES
from portal.ui import teams
from tests.page import page

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def vision() -> Team:
    return Team.objects.create(slug="vision", name="Vision", created_at=AT)


@pytest.fixture
def nlp() -> Team:
    return Team.objects.create(slug="nlp", name="Language", created_at=AT)


@pytest.fixture
def ana(vision: Team) -> User:
    user = User.objects.create_user("ana", first_name="Ana", last_name="Lopez")
    Membership.objects.create(user=user, team=vision, role=Role.MEMBER)
    return user


@pytest.fixture
def browser(ana: User) -> Client:
    client = Client()
    client.force_login(ana)
    return client


def test_sign_in_keeps_the_name_and_says_what_is_wrong(client: Client) -> None:
    answer = client.post("/sign-in", {"username": "ana", "password": "wrong"})

    assert answer.status_code == 200
    assert page(answer).field("username").value == "ana"
    assert "Please enter a correct username" in page(answer).text


def test_a_missing_page_shows_the_frame_to_people_and_not_to_strangers(
    browser: Client, client: Client
) -> None:
    inside = browser.get("/no/such/page")
    outside = client.get("/no/such/page")

    assert inside.status_code == outside.status_code == 404
    assert "Deployments" in page(inside).links
    assert "Deployments" not in page(outside).links


def test_theme_is_kept_with_the_person_and_rendered_by_the_server(
    browser: Client, ana: User
) -> None:
    answer = browser.post("/theme", {"theme": "dark"})
    ana.refresh_from_db()

    assert answer.status_code == 302
    assert ana.theme == "dark"
    assert '<html lang="en" data-theme="dark">' in browser.get("/no/such/page").content.decode()


def test_unknown_theme_is_refused_and_nothing_changes(browser: Client, ana: User) -> None:
    answer = browser.post("/theme", {"theme": "pink"})
    ana.refresh_from_db()

    assert answer.status_code == 422
    assert ana.theme == ""


def team_of(browser: Client, address: str) -> Team | None:
    """Which team the links of a page lead to."""
    return teams.get_last_used(browser.get(address).wsgi_request)


def test_the_team_whose_page_was_opened_last_is_remembered(
    browser: Client, ana: User, nlp: Team, vision: Team
) -> None:
    Membership.objects.create(user=ana, team=nlp, role=Role.VIEWER)

    assert team_of(browser, "/nlp/deployments") == nlp
    assert team_of(browser, "/no/such/page") == nlp
    # A filter and a polling page of another tab are no visit.
    assert team_of(browser, "/costs?team=vision") == vision
    browser.get("/vision/deployments", headers={"HX-Request": "true"})
    assert team_of(browser, "/no/such/page") == nlp
    assert browser.get("/")["Location"] == "/nlp"
    browser.logout()
    browser.force_login(ana)
    assert browser.get("/")["Location"] == "/nlp"


def test_a_team_that_the_user_left_is_no_longer_theirs(
    browser: Client, ana: User, nlp: Team, vision: Team
) -> None:
    membership = Membership.objects.create(user=ana, team=nlp, role=Role.VIEWER)
    browser.get("/nlp/models")

    membership.delete()

    assert browser.get("/nlp/models").status_code == 404
    assert browser.get("/")["Location"] == "/vision"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/models", "/vision/models"),
        ("/models?team=nlp&q=int8", "/nlp/models?q=int8"),
        ("/deployments/new?version=3", "/vision/deployments/new?version=3"),
        ("/models/nlp/chat/3", "/nlp/models/chat/3"),
        ("/deployments/nlp/chat/rollout?step=2", "/nlp/deployments/chat/rollout?step=2"),
        ("/pipelines/nlp/both", "/nlp/pipelines/both"),
        ("/batch/nlp/scores/parts/2", "/nlp/batch/scores/parts/2"),
        ("/api/docs", "/docs/api"),
        ("/import/mlflow/lab?page=2", "/vision/import/mlflow/lab?page=2"),
    ],
)
def test_addresses_of_older_releases_lead_to_the_pages(
    browser: Client, ana: User, nlp: Team, old: str, new: str
) -> None:
    Membership.objects.create(user=ana, team=nlp, role=Role.VIEWER)

    answer = browser.get(old)
    posted = browser.post(old)

    assert (answer.status_code, answer["Location"]) == (307, new)
    assert (posted.status_code, posted["Location"]) == (307, new)
    assert Client().get(old)["Location"].startswith("/sign-in?next=")


def test_the_filter_of_older_releases_becomes_the_one_of_today(browser: Client) -> None:
    answer = browser.get("/costs?of=vision&range=7d")

    assert (answer.status_code, answer["Location"]) == (302, "/costs?range=7d&team=vision")


@pytest.mark.parametrize("path", ["//evil.example/", "//evil.example/costs", "///evil.example"])
def test_no_old_address_leads_to_another_host(browser: Client, path: str) -> None:
    for client in (browser, Client()):
        answer = client.get("/", PATH_INFO=path, QUERY_STRING="of=vision")

        assert answer.wsgi_request.path.startswith("//")
        assert answer.status_code == 404


def test_no_team_is_called_like_a_page() -> None:
    assert {name for name in first_segments() if re.fullmatch(SLUG, name)} <= RESERVED_ADDRESSES


def first_segments() -> set[str]:
    """Return the fixed beginnings of all addresses."""

    def walk(patterns: Sequence[Any], start: str) -> Iterator[str]:
        for pattern in patterns:
            route = start + str(pattern.pattern).lstrip("^")
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, route)
            else:
                yield route.split("/")[0]

    return set(walk(get_resolver().url_patterns, ""))


def test_the_team_of_the_strongest_role_comes_first(
    browser: Client, ana: User, nlp: Team, vision: Team
) -> None:
    Membership.objects.create(user=ana, team=nlp, role=Role.VIEWER)

    assert team_of(browser, "/no/such/page") == vision


def test_team_that_is_not_visible_is_ignored(browser: Client, vision: Team, nlp: Team) -> None:
    assert team_of(browser, "/no/such/page?team=nlp") == vision
    assert browser.get("/nlp/models").status_code == 404
    assert team_of(browser, "/no/such/page") == vision


def test_domain_error_for_htmx_goes_to_the_toasts(browser: Client) -> None:
    answer = browser.post("/theme", {"theme": "pink"}, headers={"HX-Request": "true"})

    assert answer.status_code == 422
    assert answer["HX-Retarget"] == "#toasts"
    assert 'data-problem="invalid"' in answer.content.decode()
    assert not page(answer).is_whole_page


def test_chart_script_is_immutable_and_compressed(client: Client) -> None:
    from portal.ui.vega import bundle

    answer = client.get(f"/charts/vega-{bundle.VERSION}.js", headers={"Accept-Encoding": "gzip"})

    assert answer["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer["Content-Encoding"] == "gzip"
    assert client.get("/charts/vega-0.js").status_code == 404
