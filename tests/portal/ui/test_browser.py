"""The frame in a real browser: keyboard, drawer, theme, search and charts under the strict policy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from fleet.models import LedgerRow
from portal.accounts.models import Membership, Role, Team, User
from portal.core import clock
from tests import screenshots
from tests.browser_console import complaints_of
from tests.waiting import PATIENCE_MS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(screenshots.chromium_path() is None, reason="Chromium is not installed"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    # Playwright's own event loop runs in this thread; Django would refuse the test's queries.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with screenshots.browser() as running:
        yield running
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def ana() -> User:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    user = User.objects.create_user("ana", first_name="Ana", last_name="Lopez")
    for slug in ("nlp", "vision"):
        team = Team.objects.create(slug=slug, name=slug.title(), created_at=at)
        Membership.objects.create(user=user, team=team, role=Role.MEMBER)
    return user


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer, ana: User) -> Iterator[Page]:
    client = Client()
    client.force_login(ana)
    context = chromium.new_context(
        base_url=live_server.url,
        viewport={"width": 1280, "height": 800},
        color_scheme="light",
        reduced_motion="reduce",
    )
    session = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    complaints = complaints_of(page)
    yield page
    context.close()
    assert complaints == []


def test_slash_and_ctrl_k_lead_to_the_search_and_enter_jumps(page: Page) -> None:
    page.goto("/account/tokens")
    page.keyboard.press("/")
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")

    page.keyboard.type("cos")
    expect(page.locator("#jump-results a")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    page.wait_for_url("**/costs")


def test_tab_passes_the_search_and_a_click_opens_it(page: Page) -> None:
    page.goto("/account/tokens")
    search, results = page.get_by_role("searchbox"), page.locator("#jump-results")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator(".crumbs").evaluate("one => { one.tabIndex = 0; one.focus(); }")

    page.keyboard.press("Tab")

    expect(search).to_be_focused()
    expect(results).to_be_hidden()
    page.keyboard.press("Tab")
    expect(search).not_to_be_focused()
    assert [url for url in asked if "/jump" in url] == []

    search.click()
    expect(results.locator("a").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(results).to_be_hidden()


def test_one_key_in_the_top_bar_switches_the_theme_and_back(page: Page, ana: User) -> None:
    page.goto("/account/tokens")
    page.get_by_role("button", name="Dark theme").focus()

    with page.expect_response("**/theme"):
        page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    ana.refresh_from_db()
    assert ana.theme == "dark"

    with page.expect_response("**/theme"):
        page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    ana.refresh_from_db()
    assert ana.theme == "light"
    with page.expect_response("**/theme"):
        page.get_by_role("button", name="Dark theme").click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_theme_changes_at_once_and_stays(page: Page, ana: User) -> None:
    page.goto("/account/tokens")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)

    page.get_by_label("Account of Ana Lopez").click()
    with page.expect_response("**/theme"):
        page.get_by_role("button", name="Dark", exact=True).click()
    dark = page.evaluate(ground)
    page.reload()

    assert light != dark
    assert page.evaluate(ground) == dark
    ana.refresh_from_db()
    assert ana.theme == "dark"


def test_the_rail_is_a_drawer_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 700})
    page.goto("/account/tokens")
    rail = page.locator("#rail")
    expect(rail).to_be_hidden()

    page.get_by_label("Open navigation").click()
    expect(rail).to_be_visible()
    expect(page.get_by_role("link", name="Home")).to_be_focused()
    page.keyboard.press("Escape")

    expect(rail).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") == 375


def test_another_team_is_chosen_and_remembered(page: Page) -> None:
    page.goto("/nlp/models")
    page.get_by_label("Team: nlp. Change team").click()
    page.get_by_role("link", name="Vision").click()
    page.wait_for_url("**/vision/models")

    page.get_by_role("link", name="Costs").click()
    page.wait_for_url("**/costs?team=vision")
    page.get_by_label("Team: vision. Change team").click()
    page.get_by_role("link", name="All teams").click()
    page.wait_for_url("**/costs")
    expect(page.get_by_label("Team: All teams. Change team")).to_be_visible()
    page.goto("/")
    page.wait_for_url("**/vision")


def test_a_chart_draws_under_the_strict_policy(page: Page) -> None:
    hour = clock.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    LedgerRow.objects.create(
        hour=hour,
        cluster_name="local",
        node_uid="n",
        node_name="n",
        instance_type="g5.xlarge",
        kind="allocated",
        team_slug="vision",
        namespace="vision",
        workload_name="detector-r1",
        gpu_milliseconds=3_600_000,
        cost_amount=Decimal("1.006"),
        usd_per_hour_amount=Decimal("1.006"),
        price_source="list",
        sealed_at=hour,
    )

    page.goto("/costs?range=24h")

    expect(page.locator("#chart-costs .plot svg")).to_be_visible()
    expect(page.locator("#chart-costs .plot path[fill='var(--series-1)']")).to_have_count(1)
    page.get_by_text("Show as table").click()
    expect(page.locator("#chart-costs td").filter(has_text="1.01")).to_be_visible()


def test_focus_is_visible_on_the_first_stop(page: Page) -> None:
    page.goto("/account/tokens")
    page.keyboard.press("Tab")

    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
