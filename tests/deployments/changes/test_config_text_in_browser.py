"""The fields and config.pbtxt of a new deployment follow each other as people type."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from deployments.models import ModelVersion
from tests import screenshots
from tests.deployments.browsing import chromium_for_tests, signed_in_context
from tests.deployments.changes.test_config_text import SIGNATURE
from tests.deployments.world import World
from tests.waiting import PATIENCE_MS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(screenshots.chromium_path() is None, reason="Chromium is not installed"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_for_tests() as running:
        yield running


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer, world: World) -> Iterator[Page]:
    ModelVersion.objects.filter(pk=world.version1.pk).update(signature=SIGNATURE.to_json())
    context = signed_in_context(chromium, live_server.url, world.member)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"/vision/deployments/new?version={world.version1.pk}")
    page.locator("summary", has_text="Batching and Triton").click()
    yield page
    context.close()
    assert complaints == []


def _picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SLIPWAY_PICTURES"):
        for width in screenshots.WIDTHS:
            for theme in screenshots.THEMES:
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                page.screenshot(path=Path(folder) / f"{name}-{width}-{theme}.png", full_page=True)


def test_fields_and_text_follow_each_other(page: Page) -> None:
    text = page.get_by_label("config.pbtxt")
    delay = page.get_by_label("Queue delay", exact=True)
    delay.fill("750")
    delay.blur()
    expect(text).to_have_value(containing("max_queue_delay_microseconds: 750"))
    _picture(page, "fields")

    text.fill(text.input_value().replace("count: 1", "count: 4"))
    text.blur()
    expect(page.get_by_label("Instances per GPU")).to_have_value("4")
    expect(delay).to_have_value("750")

    page.get_by_text("Sequence batching", exact=True).first.click()
    page.locator("input[type=checkbox][name=batching_is_dynamic]").uncheck()
    delay.fill("0")
    page.locator("input[type=checkbox][name=triton_sequence]").check()
    page.get_by_label("Start input").fill("start")
    page.get_by_label("Start input").blur()
    expect(text).to_have_value(containing('name: "start"'))
    _picture(page, "sequence")

    text.fill(text.input_value() + "\ninstance_grop { }")
    text.blur()
    expect(page.locator("#config-problems")).to_contain_text('Did you mean "instance_group"?')
    expect(text).to_have_value(containing("instance_grop"))
    _picture(page, "refused")


def containing(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text))
