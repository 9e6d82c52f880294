"""The page of a new deployment as people type: what swaps, what stays, and where the focus goes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from deployments.models import ChangeRequest, ModelVersion
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.models import Cluster
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
URL = "/vision/deployments/new"
PARTS = {"weights": 700, "activations": 2000, "runtime": 450}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_for_tests() as running:
        yield running


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer, world: World) -> Iterator[Page]:
    signature = {**SIGNATURE.to_json(), "vram_parts_mib": PARTS}
    ModelVersion.objects.update(signature=signature, vram_estimate_mib=3152)
    features = {name: Feature(is_there=True) for name in FEATURE_DESCRIPTIONS}
    Cluster.objects.update(capabilities=Capabilities(features=features).to_json())
    context = signed_in_context(chromium, live_server.url, world.member)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(URL)
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
        page.set_viewport_size({"width": 1280, "height": 800})


def _choose(page: Page, world: World) -> None:
    page.locator("[name=version]").select_option(str(world.version1.pk))
    expect(page.locator("[name=name]")).to_have_value("detector")


def test_five_fields_are_enough(page: Page, world: World) -> None:
    _picture(page, "empty")
    _choose(page, world)
    expect(page.locator("#side h2")).to_have_text("$1.01 / h")
    expect(page.locator("#section-gpu summary")).to_contain_text("A10G (g5.xlarge) on eks-test")
    page.locator("[name=name]").fill("street")
    page.locator("[name=environment]").select_option("staging")
    page.locator("[name=requests_per_second]").fill("20")
    page.locator("[name=network_access]").select_option("open")
    expect(page.locator("#side")).to_contain_text("Fits now")
    _picture(page, "filled")
    page.get_by_role("button", name="Request deployment").click()

    expect(page.get_by_text("Request sent. Waiting for an approver.")).to_be_visible()
    change = ChangeRequest.objects.get()
    assert change.deployment is not None
    assert (change.deployment.name, change.deployment.environment) == ("street", "staging")


def test_a_heading_keeps_the_focus_when_the_answer_replaces_it(page: Page, world: World) -> None:
    _choose(page, world)
    summary = page.locator("#passed-checks summary")
    summary.focus()
    before = summary.element_handle()

    with page.expect_response(URL):
        page.evaluate(
            """() => {
              const field = document.querySelector("[name=requests_per_second]");
              field.value = "20";
              field.dispatchEvent(new Event("change", { bubbles: true }));
            }"""
        )
    page.wait_for_function("old => !old.isConnected", arg=before)

    expect(summary).to_be_focused()


def test_a_section_that_was_opened_stays_open_and_what_did_not_change_stays(
    page: Page, world: World
) -> None:
    _choose(page, world)
    scaling, placement = page.locator("#section-scaling"), page.locator("#section-placement")
    scaling.locator("summary").first.click()
    placement.evaluate("element => { element.isSame = true }")
    scaling.evaluate("element => { element.isSame = true }")

    page.locator("[name=min_replicas]").fill("2")
    page.locator("[name=max_replicas]").fill("2")
    page.locator("[name=max_replicas]").blur()

    expect(scaling.locator("summary").first).to_contain_text("fixed at 2 replicas")
    expect(scaling).to_have_attribute("open", "")
    expect(page.locator("#side h2")).to_have_text("$2.01 / h")
    assert placement.evaluate("element => element.isSame") is True
    assert scaling.evaluate("element => element.isSame") is None
    _picture(page, "scaling")
    page.locator("#section-gpu summary").first.click()
    page.locator("#section-engine summary").first.click()
    page.locator("#section-resources summary").first.click()
    _picture(page, "open")


def test_the_first_error_has_the_focus_in_its_opened_section(page: Page, world: World) -> None:
    _choose(page, world)
    page.locator("[name=network_access]").select_option("open")
    page.locator("#section-resources summary").first.click()
    page.locator("[name=memory]").fill("lots")
    page.locator("[name=memory]").blur()
    expect(page.locator("#section-resources summary").first).to_contain_text("1 to fix")
    page.get_by_role("button", name="Request deployment").click()

    expect(page.locator("#section-resources")).to_have_attribute("open", "")
    expect(page.locator("[name=memory]")).to_be_focused()
    expect(page.locator("[name=memory]")).to_have_value("lots")
    expect(page.locator("#section-scaling")).not_to_have_attribute("open", "")
    _picture(page, "error")
    assert not ChangeRequest.objects.exists()


def test_without_scripts_five_fields_are_enough(
    chromium: Browser, live_server: LiveServer, world: World
) -> None:
    with_session = signed_in_context(chromium, live_server.url, world.member)
    state = with_session.storage_state()
    with_session.close()
    context = chromium.new_context(
        base_url=live_server.url, storage_state=state, java_script_enabled=False
    )
    page = context.new_page()
    page.goto(URL)
    page.locator("[name=version]").select_option(str(world.version1.pk))
    page.locator("[name=name]").fill("street")
    page.locator("[name=network_access]").select_option("open")
    page.get_by_role("button", name="Update price and checks").click()
    expect(page.locator("#side h2")).to_have_text("$1.01 / h")
    page.get_by_role("button", name="Request deployment").click()

    expect(page.get_by_text("Request sent. Waiting for an approver.")).to_be_visible()
    context.close()
    assert ChangeRequest.objects.get().deployment is not None
