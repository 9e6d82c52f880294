"""A team lead's day: requests that somebody else decides too, a canary, and a way back."""

from __future__ import annotations

from playwright.sync_api import expect

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment, Rollout
from tests.deployments.canaries import send, soak
from tests.deployments.changes.test_roll_back_by_a_lead import promoted
from tests.deployments.signed_in import STEPS
from tests.deployments.world import World
from tests.journeys import visitor
from tests.journeys.visitor import LEFT_OPEN_SECONDS, Visit
from tests.rollout_plans import AT_ONCE

pytestmark = visitor.marks
ONE = "/vision/deployments/detector"


def test_two_leads_decide_one_request_and_the_second_is_told_who_did(
    world: World, visit: Visit
) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    first = visit(world.lead, "/vision", theme="dark", width=375, has_clock=True)
    second = visit(world.lead2, f"/approvals/{change.pk}", theme="light", width=1920)
    second.expected.append("409")
    first.click("Review", role="link")
    comment = second.page.locator("#decision [name=comment]")
    comment.click()
    second.page.keyboard.type("Too dear for one camera.")
    first.click("Approve")
    first.see("Approved.")
    assert first.list_clicks() == ["Review", "Approve a"]

    second.click("Reject")

    second.see("Already approved by lead, just now.")
    expect(second.page.get_by_label("Your comment")).to_have_value("Too dear for one camera.")
    second.click("Add comment")
    second.see("Comment added.")
    change.refresh_from_db()
    assert [one.is_approved for one in change.approvals.all()] == [True]


def test_a_request_that_is_left_open_shows_what_others_decided(world: World, visit: Visit) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    lead = visit(world.lead2, f"/approvals/{change.pk}", theme="dark", width=375, has_clock=True)
    comment = lead.page.locator("#decision [name=comment]")
    comment.click()
    lead.page.keyboard.type("Looks fine")
    world.clock.move(LEFT_OPEN_SECONDS)
    lead.leave_open("change-head", poll_seconds=4)
    expect(comment).to_have_value("Looks fine")
    expect(comment).to_be_focused()
    expect(lead.page.locator("#reading-age")).to_be_hidden()

    world.approved(change)
    lead.wait_for_poll("change-head", seconds=4)

    expect(lead.page.locator("#decision")).to_contain_text("lead approved")
    expect(lead.page.locator("#approval-status")).to_contain_text("1 of 1 approval given")
    expect(lead.named("Approve")).to_have_count(0)
    expect(lead.page.get_by_label("Your comment")).to_have_value("Looks fine")


def start_canary(world: World) -> Rollout:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan=AT_ONCE,
    )
    world.approved(change)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)
    return Rollout.objects.get()


def answer_requests(world: World) -> None:
    """A minute of traffic to both sides."""
    world.clock.move(61)
    send(world, "detector-r1", 900)
    send(world, "detector-r2", 100)
    world.reconcile_now(Deployment.objects.get())


def test_promoting_is_one_click_and_the_page_follows_while_it_is_open(
    world: World, visit: Visit
) -> None:
    rollout = start_canary(world)
    answer_requests(world)
    lead = visit(world.lead, ONE, theme="dark", width=1920, has_clock=True)

    lead.click("Promote 10")
    lead.see("Promoted one step.")
    assert lead.list_clicks() == ["Promote 10 → 50%"]
    rollout.refresh_from_db()
    assert rollout.step_index == 1

    soak(world, Deployment.objects.get(), LEFT_OPEN_SECONDS)
    lead.leave_open("deployment-head", poll_seconds=4)
    expect(lead.page.locator("#deployment-head")).to_contain_text("50%")
    expect(lead.page.locator("#reading-age")).to_be_hidden()


def test_rolling_back_is_one_click(world: World, visit: Visit) -> None:
    promoted(world)
    lead = visit(world.lead, ONE, theme="dark", width=375)

    expect(lead.named("Roll back")).to_contain_text("to r1, detector:1")
    lead.click("Roll back")

    lead.see("Rolling back to r1.")
    assert lead.list_clicks() == ["Roll back to r1, detector:1"]
    assert ChangeRequest.objects.get(kind="roll_back").state == "approved"
