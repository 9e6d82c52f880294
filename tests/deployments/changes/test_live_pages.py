"""Pages that stay open: what a poll swaps, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from deployments.changes.services import requests
from deployments.models import Deployment, Rollout
from fleet.models import Workload, WorkloadMinute
from portal.accounts.local.models import BrowserSession
from tests import screenshots
from tests.browser_console import complaints_of
from tests.deployments.browsing import chromium_for_tests, polled, signed_in_context
from tests.deployments.signed_in import STEPS
from tests.deployments.world import World
from tests.waiting import PATIENCE_MS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(screenshots.chromium_path() is None, reason="Chromium is not installed"),
    pytest.mark.django_db(transaction=True),
]
PASSWORD = "a long enough password"
ONE = "/vision/deployments/detector"
_POLLS = "**/deployments/detector?drawn=**"
_POINTS = "#plot-requests svg .mark-line path"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_for_tests() as running:
        yield running


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer, world: World) -> Iterator[Page]:
    world.serving()
    observe(world, minutes=range(1, 9))
    context = signed_in_context(chromium, live_server.url, world.lead)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.clock.install()
    # The browser itself reports each 401; that the page says it well is tested.
    complaints = complaints_of(page, expected="401")
    yield page
    context.close()
    assert complaints == []


def observe(world: World, *, minutes: range, requests: int = 60) -> None:
    """So many requests in each of the minutes, counted back from now."""
    workload = Workload.objects.get(name="detector-r1")
    this_minute = world.clock.at.replace(second=0, microsecond=0)
    for ago in minutes:
        WorkloadMinute.objects.create(
            workload=workload,
            start=this_minute - timedelta(minutes=ago),
            request_success=requests,
            request_duration_us=requests * 4000,
            observed_ms=60_000,
        )


def drawn(page: Page) -> str:
    expect(page.locator("#plot-requests svg")).to_have_count(1)
    return page.locator(_POINTS).first.get_attribute("d") or ""


def test_charts_stay_and_follow_over_two_minutes_of_polls(page: Page, world: World) -> None:
    page.goto(ONE)
    first = drawn(page)
    # Eight minutes, and the gap before them.
    assert page.locator("#chart-requests tbody tr").count() == 9
    page.get_by_text("Show as table").first.click()
    page.evaluate("window.scrollTo(0, 200)")
    page.evaluate("document.querySelector('#plot-requests svg').dataset.same = 'yes'")

    assert polled(page, "deployment-head", seconds=15) == 200

    # Nothing new was measured, so it is still the very same drawing.
    expect(page.locator("#plot-requests svg[data-same=yes]")).to_be_visible()
    expect(page.locator("#chart-requests details")).to_have_attribute("open", "")
    world.clock.move(120)
    observe(world, minutes=range(1, 3), requests=6000)

    assert polled(page, "deployment-head", seconds=15) == 200

    expect(page.locator("#plot-requests svg[data-same=yes]")).to_have_count(0)
    assert page.locator("#chart-requests tbody tr").count() == 11
    assert drawn(page) not in ("", first)
    expect(page.locator("#plot-latency svg")).to_have_count(1)
    expect(page.locator("#chart-requests details")).to_have_attribute("open", "")
    expect(page.locator("#chart-latency details")).not_to_have_attribute("open", "")
    assert page.evaluate("window.scrollY") == 200


def test_a_drawing_is_on_the_page_at_every_moment(page: Page, world: World) -> None:
    """Counted at each change of the page, not only at the end."""
    page.goto(ONE)
    drawn(page)
    page.evaluate("""() => {
      window.least = 9;
      const count = () => { window.least = Math.min(window.least, document.querySelectorAll("#plot-requests svg").length); };
      new MutationObserver(count).observe(document.getElementById("content"), { childList: true, subtree: true });
    }""")
    world.clock.move(60)
    observe(world, minutes=range(1, 2), requests=900)

    polled(page, "deployment-head", seconds=15)

    expect(page.locator("#chart-requests tbody tr")).to_have_count(10)
    drawn(page)
    assert page.evaluate("window.least") == 1


def test_what_was_typed_and_focused_survives_the_poll(page: Page, world: World) -> None:
    start_canary_on(world)
    page.goto(f"{ONE}/rollout")
    page.get_by_label("Reason").fill("p95 looks odd")

    polled(page, "deployment-head", seconds=4)

    expect(page.get_by_label("Reason")).to_have_value("p95 looks odd")
    expect(page.get_by_label("Reason")).to_be_focused()


def start_canary_on(world: World) -> None:
    deployment = Deployment.objects.get()
    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)


def end_session(page: Page) -> None:
    session = next(cookie for cookie in page.context.cookies() if cookie["name"] == "sessionid")
    BrowserSession.objects.get(session_key=session["value"]).delete()


def sign_in_again(page: Page, world: World) -> None:
    """In another tab, where the banner leads."""
    world.lead.set_password(PASSWORD)
    world.lead.save()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Sign in again").click()
    tab = opened.value
    tab.get_by_label("Username").fill("lead")
    tab.get_by_label("Password").fill(PASSWORD)
    tab.get_by_role("button", name="Sign in").click()
    tab.wait_for_url(f"**{ONE}**")
    tab.close()


def test_a_session_that_ends_keeps_the_page_and_what_was_typed(page: Page, world: World) -> None:
    start_canary_on(world)
    page.goto(f"{ONE}/rollout")
    page.get_by_label("Reason").fill("p95 looks odd")
    end_session(page)
    urls: list[str] = []

    assert polled(page, "deployment-head", seconds=4) == 401

    expect(page.get_by_text("You've been signed out")).to_have_count(1)
    expect(page.locator("input[type=password]")).to_have_count(0)
    page.on("request", lambda request: urls.append(request.url))
    page.clock.run_for(60_000)
    assert [url for url in urls if "/session" not in url] == []
    page.get_by_role("button", name="Abort").first.click()
    expect(page.get_by_role("link", name="Sign in again")).to_be_focused()
    expect(page.get_by_label("Reason")).to_have_value("p95 looks odd")
    sign_in_again(page, world)
    expect(page.get_by_text("You've been signed out")).to_have_count(0)
    assert polled(page, "deployment-head", seconds=4) == 200
    expect(page.get_by_label("Reason")).to_have_value("p95 looks odd")
    page.locator("#pause").click()
    expect(page.get_by_text("Paused. The traffic weight stays as it is.")).to_be_visible()
    assert Rollout.objects.get().phase_reason == "p95 looks odd"


def test_going_back_far_shows_whole_pages(page: Page) -> None:
    page.goto("/audit")
    with page.expect_response("**/audit?**"):
        page.locator("main input[type=search]").fill("detector")
        page.clock.run_for(400)
    page.clock.run_for(50)
    page.wait_for_url("**/audit?**detector**")
    page.goto("/costs")
    page.goto("/fleet")

    for address in ("/costs", "/audit?", "/audit"):
        page.go_back()
        page.wait_for_url(f"**{address}*")
        expect(page.locator("#rail")).to_be_visible()
        expect(page.locator("h1")).to_have_count(1)


@pytest.fixture
def unanswered(chromium: Browser, live_server: LiveServer, world: World) -> Iterator[Page]:
    """A page whose polls fail; the browser's console says so, which is expected."""
    world.serving()
    context = signed_in_context(chromium, live_server.url, world.lead)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.clock.install()
    page.goto(ONE)
    page.route(_POLLS, lambda route: route.abort())
    yield page
    context.close()


def test_a_page_that_is_not_answered_asks_seldom_and_says_how_old_it_is(unanswered: Page) -> None:
    page, asked = unanswered, list[str]()
    age, toasts = page.locator("#reading-age"), page.locator("#toasts > *")
    page.on("request", lambda request: asked.append(request.url))

    # The wait doubles after each failure: polls at 15, 45 and 105 s.
    for quiet_seconds in (0, 15, 45):
        page.clock.run_for(quiet_seconds * 1000)
        with page.expect_event("requestfailed"):
            page.clock.run_for(15_000)
        expect(toasts).to_have_count(1)
        if not quiet_seconds:
            expect(age).to_be_hidden()

    assert len(asked) == 3
    page.clock.run_for(2_000)
    expect(age).to_have_text("This page is 1 min old. It updates as soon as the portal answers.")
    page.unroute(_POLLS)

    assert polled(page, "deployment-head", seconds=60) == 200

    expect(age).to_be_hidden()
    expect(toasts).to_have_count(0)
