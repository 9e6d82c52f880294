"""The way from signing in to a roll back with keys alone; the focus is seen at each stop."""

from __future__ import annotations

from playwright.sync_api import expect

from deployments.models import ChangeRequest, Deployment
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.models import Cluster
from tests.deployments.changes.test_roll_back_by_a_lead import promoted
from tests.deployments.world import World
from tests.journeys import visitor
from tests.journeys.visitor import Visit

pytestmark = visitor.marks
ONE = "/vision/deployments/detector"


def test_a_deployment_is_requested_approved_and_rolled_back_by_keys(
    world: World, visit: Visit
) -> None:
    promoted(world)
    features = {name: Feature(is_there=True) for name in FEATURE_DESCRIPTIONS}
    Cluster.objects.update(capabilities=Capabilities(features=features).to_json())
    member = visit(world.member, "/vision/deployments", theme="light", width=1920)
    page = member.page
    member.tab_to(member.named("New deployment", role="link"))
    member.press("Enter")
    page.wait_for_url("**/deployments/new")
    member.tab_to(page.locator("[name=version]"))
    member.press("ArrowDown")
    expect(page.locator("[name=name]")).to_have_value("detector-2")
    member.tab_to(page.locator("[name=name]"))
    member.press("Control+a")
    page.keyboard.type("street")
    member.tab_to(page.locator("[name=environment]"))
    expect(page.locator("#side")).to_contain_text("Fits now")
    member.tab_to(member.named("Request deployment"))
    member.press("Enter")
    member.see("Request sent. Waiting for an approver.")
    change = ChangeRequest.objects.get(deployment__name="street")

    lead = visit(world.lead, "/approvals", theme="dark", width=1280)
    lead.press("j")
    expect(lead.page.locator("[data-inbox-row]").first).to_be_focused()
    lead.press("Enter")
    lead.page.wait_for_url(f"**/approvals/{change.pk}")
    lead.tab_to(lead.named("Approve"))
    lead.press("Enter")
    lead.see("Approved.")
    change.refresh_from_db()
    assert change.state == "approved"

    lead.press("/")
    lead.page.keyboard.type("detector")
    found = lead.page.locator("#jump-results a[href$='/deployments/detector']").first
    expect(found).to_be_visible()
    for _ in range(10):
        lead.press("ArrowDown")
        if found.evaluate("element => element === document.activeElement"):
            break
    lead.press("Enter")
    lead.page.wait_for_url(f"**{ONE}")
    lead.tab_to(lead.named("Roll back"))
    lead.press("Enter")
    lead.see("Rolling back to r1.")
    assert Deployment.objects.get(name="detector").changes.filter(kind="roll_back").exists()
    assert (member.list_clicks(), lead.list_clicks()) == ([], [])
