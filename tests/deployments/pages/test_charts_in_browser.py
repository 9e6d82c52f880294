"""Charts as people read them: one instant in all of them, by pointer and keyboard, and a part of them enlarged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from deployments.models import ChangeRequest, Deployment, DeploymentEvent
from fleet.models import Workload, WorkloadMinute
from tests import screenshots
from tests.browser_console import complaints_of
from tests.deployments.browsing import chromium_for_tests, signed_in_context
from tests.deployments.ledger import spend
from tests.deployments.world import World
from tests.waiting import PATIENCE_MS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(screenshots.chromium_path() is None, reason="Chromium is not installed"),
    pytest.mark.django_db(transaction=True),
]
ONE = "/vision/deployments/detector"
MINUTE = timedelta(minutes=1)
_OVERLAPS = """() => [...document.querySelectorAll(".plot")].flatMap((plot) => {
  const boxes = [...plot.querySelectorAll(".role-axis[aria-label^=X] .role-axis-label text")]
    .filter((text) => text.getAttribute("opacity") !== "0").map((text) => text.getBoundingClientRect());
  return boxes.filter((box, index) => index && box.left < boxes[index - 1].right + 2).length;
})"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_for_tests() as running:
        yield running


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer, world: World) -> Iterator[Page]:
    """An hour of which 20 minutes were not read, 5 had no requests, and one brought a rollout."""
    deployment = world.serving()
    now = world.clock.at.replace(second=30, microsecond=0)
    world.clock.at = now
    Deployment.objects.update(
        created_at=now - timedelta(days=9), first_ready_at=now - timedelta(days=9)
    )
    DeploymentEvent.objects.all().delete()
    ChangeRequest.objects.update(finished_at=now - timedelta(hours=3), state="done")
    minute = now.replace(second=0)
    for ago, kind, message in (
        (200, "state", "ready"),
        (50, "state", "stopped"),
        (30, "state", "ready"),
        (10, "rollout started", "r2 replaces r1"),
    ):
        DeploymentEvent.objects.create(
            deployment=deployment,
            at=minute - ago * MINUTE,
            kind=kind,
            message=message,
            revision_number=2 if "rollout" in kind else None,
        )
    for ago in (*range(31), *range(50, 61)):
        requests = 0 if ago in range(15, 20) else 60 * (ago % 7 + 1)
        WorkloadMinute.objects.create(
            workload=Workload.objects.get(name="detector-r1"),
            start=minute - ago * MINUTE,
            request_success=requests,
            request_duration_us=requests * 5_300_000,
            observed_ms=60_000,
        )
    context = signed_in_context(chromium, live_server.url, world.lead)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    complaints = complaints_of(page)
    yield page
    context.close()
    assert complaints == []


def open_charts(page: Page, address: str = ONE) -> tuple[Locator, Locator]:
    page.goto(address)
    for name in ("requests", "latency"):
        expect(page.locator(f"#plot-{name} svg")).to_have_count(1)
        expect(page.locator(f"#plot-{name}")).to_have_attribute("role", "slider")
    return page.locator("#chart-requests"), page.locator("#chart-latency")


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SLIPWAY_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def time_text(world: World, ago: int) -> str:
    return f"{world.clock.at - ago * MINUTE:%Y-%m-%d %H:%M} UTC"


def test_keys_show_one_instant_in_all_charts(page: Page, world: World) -> None:
    requests, latency = open_charts(page)
    plot = page.locator("#plot-requests")

    plot.focus()
    page.keyboard.press("End")

    expect(requests.locator("[data-value]")).to_have_text("2")
    expect(latency.locator("[data-value]")).to_have_text("5.3 s")
    for chart in (requests, latency):
        expect(chart.locator("[data-instant]")).to_have_text(time_text(world, 1))
        expect(chart.locator(".crosshair")).to_have_count(1)
    expect(plot).to_have_attribute("aria-valuetext", f"{time_text(world, 1)}, stable 2")
    page.keyboard.press("ArrowLeft")
    expect(requests.locator("[data-instant]")).to_have_text(time_text(world, 2))
    page.keyboard.press("PageUp")
    expect(requests.locator("[data-instant]")).to_have_text(
        f"{time_text(world, 10)} · r2 rollout began"
    )
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    # Without requests there is a rate, but nothing that took time.
    expect(requests.locator("[data-value]")).to_have_text("0")
    expect(latency.locator("[data-value]")).to_have_text("no requests")
    page.keyboard.press("PageUp")
    page.keyboard.press("ArrowLeft")
    expect(latency.locator("[data-value]")).to_have_text("stopped")
    picture(page, "crosshair")
    page.keyboard.press("Escape")
    expect(page.locator(".crosshair")).to_have_count(0)
    expect(requests.locator("[data-value]")).to_have_text("")


def test_the_pointer_moves_the_same_line_in_both(page: Page) -> None:
    requests, latency = open_charts(page)
    page.locator("#plot-latency").scroll_into_view_if_needed()
    box = page.locator("#plot-latency svg").bounding_box()
    assert box is not None

    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 60)

    expect(latency.locator("[data-value]")).to_have_text("5.3 s")
    instant = latency.locator("[data-instant]").inner_text()
    expect(requests.locator("[data-instant]")).to_have_text(instant)
    page.mouse.move(5, 5)
    expect(page.locator(".crosshair")).to_have_count(0)


def test_a_part_is_enlarged_in_all_charts_and_escape_goes_back(page: Page) -> None:
    open_charts(page)
    whole = page.locator("#plot-latency .mark-line path").first.get_attribute("d")
    box = page.locator("#plot-requests svg").bounding_box()
    assert box is not None

    def drag() -> None:
        page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 70)
        expect(page.locator("#plot-requests .zoom")).to_have_count(1)
        page.mouse.up()

    drag()
    back = page.locator("#chart-requests [data-zoom-out]")
    expect(back).to_be_visible()
    line = page.locator("#plot-latency .mark-line path").first
    expect(line).not_to_have_attribute("d", whole or "")
    picture(page, "zoom")
    page.keyboard.press("Escape")
    expect(back).to_be_hidden()
    expect(line).to_have_attribute("d", whole or "")
    drag()
    back.click()
    expect(back).to_be_hidden()
    expect(line).to_have_attribute("d", whole or "")


def test_labels_of_the_axes_do_not_collide_on_a_phone(page: Page, world: World) -> None:
    for ago in range(1, 20):
        spend(Deployment.objects.get(), world.clock.at - timedelta(days=ago), f"{ago}.5")
    for width in (375, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        for name in ("1h", "6h", "24h", "7d"):
            open_charts(page, f"{ONE}?range={name}")
            assert page.evaluate(_OVERLAPS) == [0, 0], (width, name)
            for theme in screenshots.THEMES:
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                picture(page, f"overview-{name}-{width}-{theme}")
        page.goto(f"{ONE}/cost")
        expect(page.locator("#plot-cost svg")).to_have_count(1)
        assert page.evaluate(_OVERLAPS) == [0], width
        picture(page, f"cost-{width}")
