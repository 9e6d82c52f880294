"""The upload page in Debian's Chromium, against the real S3 server, under the real CSP."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.db import connections
from django.test import Client
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from deployments.models import ModelVersion
from deployments.registry.gateways import bucket_setup
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import verification
from deployments.states import VersionState
from tests.deployments import onnx_models
from tests.deployments.uploading import People

Result = TypeVar("Result")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def session(people: People) -> str:
    client = Client()
    client.force_login(people.member)
    return client.cookies["sessionid"].value


@pytest.fixture
def page(
    session: str,
    live_server: Any,
    s3_store: S3Store,
    s3_server: str,
    settings: Any,
    browser: Browser,
) -> Page:
    policy = settings.CONTENT_SECURITY_POLICY
    directives = policy["DIRECTIVES"] | {"connect-src": ["'self'", s3_server]}
    settings.CONTENT_SECURITY_POLICY = policy | {"DIRECTIVES": directives}
    bucket_setup.prepare(s3_store, region="us-east-1", origins=[live_server.url])
    context = browser.new_context(base_url=live_server.url)
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page = context.new_page()
    # How long a page takes says how busy the machine is.
    page.set_default_timeout(120_000)
    complaints: list[str] = []
    # What the console says, for the assertions.
    page.complaints = complaints  # type: ignore[attr-defined]  # a place to keep them
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page


def apart(work: Callable[[], Result]) -> Result:
    """Playwright keeps an event loop in this thread, so the database is used from another one."""

    def run() -> Result:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(run).result()


def verify_the_only_version() -> ModelVersion:
    verification.advance(ModelVersion.objects.get().pk)
    return ModelVersion.objects.get()


def big_model(folder: Path) -> Path:
    """A real ONNX file of three parts."""
    path = folder / "detector.onnx"
    path.write_bytes(onnx_models.large(megabytes=20))
    return path


def test_a_file_chosen_in_the_browser_becomes_ready_before_the_eyes(
    page: Page, tmp_path: Path
) -> None:
    page.goto("/upload")
    page.set_input_files("#file", big_model(tmp_path))
    expect(page.locator("[name=model]")).to_have_value("detector")
    page.fill("[name=accuracy]", "0.91")
    page.click("text=Batching and sizes")
    page.fill("[name=largest_batch]", "8")
    page.fill("[name=largest_inputs]", "x = -1 x four")
    page.click("#send")
    expect(page.locator("[name=largest_inputs]")).to_have_attribute("aria-invalid", "true")
    page.fill("[name=largest_inputs]", "x = -1 x 4")
    page.click("#send")

    expect(page.locator("#verification")).to_have_attribute("data-state", "verifying")
    version = apart(verify_the_only_version)

    expect(page.locator("#verification")).to_have_attribute("data-state", "ready", timeout=60_000)
    expect(page.get_by_role("link", name="Deploy", exact=True)).to_have_attribute(
        "href", f"/deployments/new?version={version.pk}"
    )
    assert version.has_part_checksums
    assert version.metadata == {"accuracy": 0.91}
    sizes = {"x": [-1, 4]}
    declared = {"takes_batches": None, "largest_batch": 8, "largest_inputs": sizes}
    assert version.declared == declared
    assert version.sha256 == version.declared_sha256 != ""
    assert page.complaints == []  # type: ignore[attr-defined]


def test_an_upload_goes_on_after_the_tab_was_closed(page: Page, tmp_path: Path) -> None:
    path = big_model(tmp_path)
    sent: list[str] = []

    def let_two_parts_through(route: Route) -> None:
        sent.append(route.request.url)
        # One that is kept waiting would be sent after all when its page closes.
        route.continue_() if len(sent) <= 2 else route.abort()

    page.context.route("**/artifact?*", let_two_parts_through)
    page.goto("/upload")
    page.set_input_files("#file", path)
    page.click("#send")
    expect(page.locator("#progress-text")).to_contain_text("of 19 MiB")
    page.wait_for_function("() => document.querySelector('#bar').value > 55")
    context = page.context
    page.close()
    context.unroute("**/artifact?*")

    again = context.new_page()
    again.goto("/upload")
    expect(again.locator("#unfinished")).to_contain_text("detector.onnx")
    again.set_input_files("#file", path)
    expect(again.locator("#file-note")).to_contain_text("Already partly uploaded as detector:1")
    puts: list[str] = []
    again.on("request", lambda r: puts.append(r.url) if r.method == "PUT" else None)
    again.click("#send")

    expect(again.locator("#verification")).to_have_attribute("data-state", "verifying")
    assert len(puts) == 1
    version = apart(verify_the_only_version)
    assert version.state == VersionState.READY


def test_a_refusal_stands_beside_its_field_and_keeps_what_was_typed(
    page: Page, tmp_path: Path
) -> None:
    path = tmp_path / "detector.onnx"
    path.write_bytes(onnx_models.linear())
    page.goto("/upload")
    page.set_input_files("#file", path)
    page.fill("[name=model]", "My_Detector")
    page.fill("[name=accuracy]", "91")
    page.click("#send")

    expect(page.locator(".field:has([name=model]) .err")).to_contain_text("'my-detector'")
    expect(page.locator(".field:has([name=accuracy]) .err")).to_contain_text("0.914")
    expect(page.locator("[name=accuracy]")).to_have_value("91")
    assert apart(ModelVersion.objects.count) == 0


def test_known_bytes_are_reported_and_sent_again_only_on_request(
    page: Page, tmp_path: Path
) -> None:
    path = tmp_path / "detector.onnx"
    path.write_bytes(onnx_models.linear())
    page.goto("/upload")
    page.set_input_files("#file", path)
    page.click("#send")
    expect(page.locator("#verification")).to_have_attribute("data-state", "verifying")
    apart(verify_the_only_version)

    page.goto("/upload")
    page.set_input_files("#file", path)
    page.click("#send")
    expect(page.locator("#problem")).to_contain_text("already version 1 of detector")
    expect(page.locator("#problem")).to_be_focused()
    assert apart(ModelVersion.objects.count) == 1

    page.click("#anyway")
    expect(page.locator("#verification")).to_have_attribute("data-state", "verifying")
    assert apart(ModelVersion.objects.count) == 2
