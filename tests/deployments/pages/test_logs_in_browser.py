"""A log that is followed: only while its end is in sight, and with the filter that was typed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from fleet.models import Pod, Workload
from tests import screenshots
from tests.browser_console import complaints_of
from tests.deployments.browsing import chromium_for_tests, polled, signed_in_context
from tests.deployments.world import World
from tests.waiting import PATIENCE_MS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(screenshots.chromium_path() is None, reason="Chromium is not installed"),
    pytest.mark.django_db(transaction=True),
]
LOGS = "/vision/deployments/detector/logs"
PODS = ("detector-r1-5d8f7-x2x9z", "detector-r1-5d8f7-k8k2m")
# Of each twenty lines one is a warning and one an error.
_LETTERS = {0: "W", 1: "E"}
_IS_AT_END = "log => log.scrollTop > 0 && log.scrollTop + log.clientHeight >= log.scrollHeight - 2"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_for_tests() as running:
        yield running


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer, world: World) -> Iterator[Page]:
    world.serving()
    for name in PODS:
        Pod.objects.create(
            cluster_id=world.cluster_id,
            workload=Workload.objects.get(name="detector-r1"),
            namespace="vision",
            name=name,
            uid=name,
            phase="Running",
            is_ready=True,
            restart_count=1,
            created_at=world.clock.at - timedelta(minutes=2),
        )
        world.cluster.objects["Event", "vision", name] = {
            "metadata": {"name": name, "namespace": "vision"},
            "involvedObject": {"kind": "Pod", "name": name},
            "type": "Warning",
            "reason": "Unhealthy",
            "message": "Readiness probe failed: HTTP probe failed with statuscode: 503",
            "lastTimestamp": (world.clock.at - timedelta(minutes=5)).isoformat(),
        }
        world.cluster.logs[name] = "".join(
            f"2026-11-29T09:41:{second:02}.5Z {_LETTERS.get(second % 20, 'I')}1129 "
            f"09:41:{second:02}.5 1 a.cc:1] request {second}\n"
            for second in range(60)
        )
    context = signed_in_context(chromium, live_server.url, world.viewer)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.clock.install()
    complaints = complaints_of(page)
    page.goto(LOGS)
    yield page
    context.close()
    assert complaints == []


def _picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SLIPWAY_PICTURES"):
        for width in (*screenshots.WIDTHS, 1920):
            for theme in screenshots.THEMES:
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                page.screenshot(path=Path(folder) / f"{name}-{width}-{theme}.png", full_page=True)
        page.set_viewport_size({"width": 1280, "height": 800})


def test_a_log_is_followed_while_its_end_is_in_sight(page: Page, world: World) -> None:
    log, state = page.locator("#log"), page.locator("[data-follow-state]")
    requests: list[str] = []
    page.on(
        "request",
        lambda request: (
            requests.append(request.url) if request.headers.get("hx-target") == "logs" else None
        ),
    )
    assert log.evaluate(_IS_AT_END)
    expect(state).to_have_text("")
    _picture(page, "logs")

    world.cluster.logs[PODS[0]] += "2026-11-29T09:42:01Z the first news\n"
    assert polled(page, "logs", seconds=5) == 200

    expect(log).to_contain_text("the first news")
    assert log.evaluate(_IS_AT_END)

    log.evaluate("log => log.scrollTo({ top: 40, behavior: 'instant' })")
    expect(state).to_have_text("paused: scroll to the end")
    world.cluster.logs[PODS[0]] += "2026-11-29T09:42:02Z the second news\n"
    requests.clear()
    page.clock.run_for(60_000)

    assert requests == []
    expect(page.locator("#reading-age")).to_be_hidden()
    assert log.evaluate("log => log.scrollTop") == 40

    log.evaluate("log => log.scrollTo({ top: log.scrollHeight, behavior: 'instant' })")

    expect(log).to_contain_text("the second news")
    expect(state).to_have_text("")
    page.get_by_label("Follow").uncheck()
    expect(state).to_have_text("off")
    requests.clear()
    page.clock.run_for(20_000)
    assert requests == []


def test_a_typed_filter_shows_at_once_and_stays_while_the_log_is_followed(
    page: Page, world: World
) -> None:
    log = page.locator("#log")
    page.locator(".filters [name=level]").select_option("warning")
    expect(log.locator("span")).to_have_count(12)

    with page.expect_response(lambda answer: "q=REQUEST%204" in answer.url):
        page.locator(".filters [name=q]").press_sequentially("REQUEST 4")
        page.clock.run_for(500)

    expect(log.locator("mark")).to_have_count(4)
    expect(page).to_have_url(re.compile(r"/logs\?pod=&level=warning&q=REQUEST%204&lines=100$"))
    _picture(page, "logs-filtered")
    world.cluster.logs[PODS[1]] += "2026-11-29T09:42:01Z W1129 09:42:01.0 1 a.cc:1] request 400\n"

    assert polled(page, "logs", seconds=5) == 200

    expect(log).to_contain_text("request 400")
    expect(log.locator("span")).to_have_count(5)
    expect(page.locator(".filters [name=q]")).to_be_focused()
