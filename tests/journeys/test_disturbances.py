"""Disturbances lose nothing and are never silent: an ended session, a slow network, an error, a second tab."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from deployments.models import ChangeRequest
from portal.accounts.local.models import BrowserSession
from tests.deployments.world import World
from tests.journeys import visitor
from tests.journeys.visitor import PASSWORD, Visit, Visitor

pytestmark = visitor.marks
ONE = "/vision/deployments/detector"
NEW = "/vision/deployments/new"


def type_into(page: Page, name: str, text: str) -> None:
    page.locator(f"[name={name}]").click()
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def choose_version(visitor: Visitor, world: World) -> None:
    visitor.page.locator("[name=version]").select_option(str(world.version1.pk))


def test_an_ended_session_keeps_team_and_place_and_what_was_typed(
    world: World, visit: Visit
) -> None:
    world.serving(environment="staging")
    person = visit(world.member, f"{ONE}/scale", theme="light", width=375)
    person.expected += ["401", "409"]
    type_into(person.page, "min_replicas", "2")
    type_into(person.page, "max_replicas", "2")
    type_into(person.page, "comment", "For Friday.")
    BrowserSession.objects.filter(user=world.member).delete()

    person.click("Request change")

    person.see("You were signed out before this was sent")
    person.page.keyboard.type("member")
    person.press("Tab")
    person.page.keyboard.type(PASSWORD)
    person.press("Enter")
    expect(person.page.locator("[name=comment]")).to_have_value("For Friday.")
    assert person.page.url.endswith(f"{ONE}/scale")
    assert not ChangeRequest.objects.filter(kind="scale").exists()
    person.click("Request change")
    person.see("Request sent. Waiting for an approver.")
    assert ChangeRequest.objects.get(kind="scale").comment == "For Friday."


# A page that is being left answers nothing: what its button said is read on the next one.
_KEEP_WHAT_IS_BUSY = """() => new MutationObserver(([{ target }]) => sessionStorage.setItem("busy", target.textContent.trim()))
  .observe(document.getElementById("send"), { attributeFilter: ["aria-busy"], subtree: true })"""
# By the links that people take, each of which is a page of its own.
WAY = (
    "Models",
    "Deployments",
    "detector",
    "Timeline",
    "Logs",
    "Pipelines",
    "Approvals",
    "Fleet",
    "Costs",
    "Advice",
)


def test_ten_times_back_leads_to_where_one_was(world: World, visit: Visit) -> None:
    world.serving()
    person = visit(world.member, "/vision", theme="dark", width=1280)
    page, seen = person.page, []
    for name in WAY:
        seen.append((page.url, page.locator("h1").inner_text()))
        page.get_by_role("link", name=name, exact=True).locator("visible=true").first.click()
        expect(page).not_to_have_url(seen[-1][0])
    assert len(seen) == 10

    for url, title in reversed(seen):
        page.go_back()
        page.wait_for_url(url)
        expect(page.locator("h1")).to_have_text(title)
        expect(page.locator("#rail")).to_be_visible()
        expect(page.locator("#toasts > *")).to_have_count(0)


@pytest.fixture
def form(world: World, visit: Visit) -> Visitor:
    person = visit(world.member, NEW, theme="light", width=375)
    choose_version(person, world)
    expect(person.page.locator("[name=name]")).to_have_value("detector")
    person.page.locator("[name=network_access]").select_option("open")
    expect(person.page.locator("#side")).to_contain_text("Fits now")
    return person


def test_an_error_in_a_swap_is_said_and_nothing_typed_is_lost(form: Visitor) -> None:
    page = form.page
    form.expected.append("500")
    toasts = page.locator("#toasts > *")
    answers = [500]

    def fail_once(route: Route) -> None:
        if route.request.method == "POST" and answers:
            route.fulfill(status=answers.pop(), body="")
        else:
            route.continue_()

    page.route(f"**{NEW}", fail_once)
    type_into(page, "name", "street")
    form.press("Tab")

    expect(toasts).to_have_count(1)
    expect(toasts).to_contain_text("What you typed is still here")
    expect(page.locator("[name=name]")).to_have_value("street")
    type_into(page, "requests_per_second", "20")
    form.press("Tab")

    expect(toasts).to_have_count(0)
    expect(page.locator("[name=name]")).to_have_value("street")
    expect(page.locator("[name=requests_per_second]")).to_have_value("20")
    form.click("Request deployment")
    form.see("Request sent. Waiting for an approver.")
    change = ChangeRequest.objects.get()
    assert change.deployment is not None
    assert change.deployment.name == "street"


def test_on_a_slow_network_typing_goes_on_and_a_request_is_sent_once(form: Visitor) -> None:
    page, held = form.page, list[Route]()

    def hold(route: Route) -> None:
        held.append(route)

    page.route(f"**{NEW}", hold)
    type_into(page, "name", "street")
    form.press("Tab")
    while not held:
        page.wait_for_timeout(20)
    type_into(page, "requests_per_second", "20")
    held.pop().continue_()
    expect(page.locator("[name=requests_per_second]")).to_have_value("20")
    expect(page.locator("[name=name]")).to_have_value("street")
    page.unroute_all()
    with page.expect_response(lambda answer: answer.url.endswith(NEW)):
        form.press("Tab")

    posts: list[str] = []
    page.on("request", lambda one: posts.append(one.url) if one.is_navigation_request() else None)
    page.evaluate(_KEEP_WHAT_IS_BUSY)
    form.named("Request deployment").dblclick(no_wait_after=True)

    form.see("Request sent. Waiting for an approver.")
    assert page.evaluate("sessionStorage.getItem('busy')") == "Request deployment"
    assert len([url for url in posts if url.endswith(NEW)]) == 1
    assert ChangeRequest.objects.count() == 1


def test_a_second_tab_with_the_same_form_is_refused_with_all_that_was_typed(
    form: Visitor, world: World
) -> None:
    form.expected += ["409", "422"]
    second = form.page.context.new_page()
    second.goto(NEW)
    second.locator("[name=version]").select_option(str(world.version1.pk))
    expect(second.locator("[name=name]")).to_have_value("detector")
    second.locator("[name=network_access]").select_option("open")
    type_into(second, "requests_per_second", "30")
    form.click("Request deployment")
    form.see("Request sent. Waiting for an approver.")

    second.get_by_role("button", name="Request deployment").click()

    expect(
        second.get_by_text(re.compile("detector .*(exists|taken|already)")).first
    ).to_be_visible()
    expect(second.locator("[name=requests_per_second]")).to_have_value("30")
    expect(second.locator("[name=network_access]")).to_have_value("open")
    assert ChangeRequest.objects.count() == 1
