"""A platform engineer's day: the platform's home left open, why costs rose, and a new colleague."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect

from fleet.models import Cluster, LedgerRow
from portal.accounts.local.models import Invitation
from tests.deployments.advice import history
from tests.deployments.world import World
from tests.journeys import visitor
from tests.journeys.visitor import LEFT_OPEN_SECONDS, Visit

pytestmark = visitor.marks


def test_why_costs_rose_is_two_clicks_and_a_colleague_is_two(world: World, visit: Visit) -> None:
    serve_one_hour_more_than_before(world)
    engineer = visit(world.admin, "/", theme="dark", width=1280, has_clock=True)
    engineer.page.evaluate("window.isTheSamePage = true")
    world.clock.move(LEFT_OPEN_SECONDS)
    engineer.leave_open("platform", poll_seconds=15)
    Cluster.objects.update(last_error="The connection was refused.")
    engineer.wait_for_poll("platform", seconds=15)
    engineer.see("The connection was refused.")
    assert engineer.page.evaluate("window.isTheSamePage") is True
    expect(engineer.page.locator("#reading-age")).to_be_hidden()

    engineer.click("Costs", role="link", exact=True)
    engineer.see("Costs rose by")
    engineer.click("$1.01 more hours", role="link")
    expect(engineer.page.locator("h1")).to_contain_text("Ledger")
    assert len(engineer.list_clicks()) <= 2

    engineer.page.goto("/")
    engineer.click("Admin", role="link", exact=True)
    engineer.click("People", role="link", exact=True)
    expect(engineer.page.locator("[data-first-field] [name=name]")).to_be_focused()
    engineer.page.keyboard.type("Ana Lopez")
    engineer.press("Tab")
    expect(engineer.page.locator("[name=email]")).to_be_focused()
    engineer.page.keyboard.type("ana@example.org")
    engineer.press("Enter")
    engineer.see("ana@example.org")
    assert len(engineer.list_clicks()) <= 2
    assert Invitation.objects.get().email == "ana@example.org"


def serve_one_hour_more_than_before(world: World) -> None:
    """Two hours of this month, and one of the same time before it."""
    deployment = world.serving()
    if month_of(world) + timedelta(hours=3) > world.clock.at:
        world.clock.move(3 * 3600)
    history.write(world, deployment, hours=2)
    earlier = LedgerRow.objects.order_by("hour").filter(kind="allocated")[0]
    earlier.pk, earlier.hour = None, month_of(world) - timedelta(hours=3)
    earlier.save(force_insert=True)


def month_of(world: World) -> datetime:
    return world.clock.at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
