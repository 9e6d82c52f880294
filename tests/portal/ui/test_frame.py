from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client

from portal.accounts.models import Membership, Role, Team, User
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
    inside = browser.get("/no-such-page")
    outside = client.get("/no-such-page")

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
    assert '<html lang="en" data-theme="dark">' in browser.get("/no-such-page").content.decode()


def test_unknown_theme_is_refused_and_nothing_changes(browser: Client, ana: User) -> None:
    answer = browser.post("/theme", {"theme": "pink"})
    ana.refresh_from_db()

    assert answer.status_code == 422
    assert ana.theme == ""


def team_of(browser: Client, address: str) -> Team | None:
    """Which team the request was about."""
    team: Team | None = getattr(browser.get(address).wsgi_request, "team")  # noqa: B009  of ours
    return team


def test_team_of_the_address_is_remembered_when_visible(
    browser: Client, ana: User, nlp: Team
) -> None:
    Membership.objects.create(user=ana, team=nlp, role=Role.VIEWER)

    assert team_of(browser, "/no-such-page?team=nlp") == nlp
    assert team_of(browser, "/no-such-page") == nlp


def test_the_team_of_the_strongest_role_comes_first(
    browser: Client, ana: User, nlp: Team, vision: Team
) -> None:
    Membership.objects.create(user=ana, team=nlp, role=Role.VIEWER)

    assert team_of(browser, "/no-such-page") == vision


def test_team_that_is_not_visible_is_ignored(browser: Client, vision: Team, nlp: Team) -> None:
    assert team_of(browser, "/no-such-page?team=nlp") == vision


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
