"""An upload is paused or canceled at each moment of it: it says so, sends nothing more, and goes on when resumed.

A script of the page selects the button exactly then, so that no test depends on how fast a machine is.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from deployments.models import ModelVersion
from deployments.states import VersionState
from tests.deployments import onnx_models
from tests.deployments.registry import upload_page
from tests.deployments.registry.test_folder_upload_in_browser import (
    folder_format,
    puts_of,
    wait_for_verification,
    write,
)
from tests.deployments.registry.upload_page import apart

__all__ = ["folder_format"]
pytestmark = upload_page.marks
PAUSED = "Paused. Sent parts are kept for 24 hours."
# Selects `button` once: when the request begins, when its answer is there but not read, or when it was read.
SELECT = """([moment, path, button]) => {
  const [send, read] = [window.fetch, Response.prototype.json];
  let isOver = false;
  const select = (now, url) => {
    if (isOver || now !== moment || !new URL(url, location).pathname.endsWith(path)) return;
    isOver = true;
    document.querySelector(button).click();
  };
  window.fetch = (url, options) => { select("begun", url); return send(url, options); };
  Response.prototype.json = async function () {
    select("answered", this.url);
    const data = await read.call(this);
    select("read", this.url);
    return data;
  };
}"""


def chosen(page: Page, tmp_path: Path) -> Path:
    path = tmp_path / "detector.onnx"
    path.write_bytes(onnx_models.linear())
    page.goto("/vision/upload")
    page.set_input_files("#file", path)
    expect(page.locator("#file-note")).to_contain_text("ONNX")
    return path


def select_at(page: Page, moment: str, path: str, button: str = "#pause") -> None:
    page.evaluate(SELECT, [moment, path, button])


@pytest.mark.parametrize("moment", ["begun", "answered", "read"])
@pytest.mark.parametrize("request_path", ["/versions", "/files", "/parts", "/complete"])
def test_a_pause_at_each_request_is_a_pause(
    page: Page, tmp_path: Path, moment: str, request_path: str
) -> None:
    chosen(page, tmp_path)
    puts = puts_of(page)
    select_at(page, moment, request_path)
    page.click("#send")
    expect(page.locator("#progress-status")).to_have_text(PAUSED)
    expect(page.locator("#problem")).to_be_hidden()
    assert len(puts) == (1 if request_path == "/complete" else 0)
    expect(page.locator("#pause")).to_have_text("Resume")
    page.click("#pause")

    wait_for_verification(page)
    assert apart(ModelVersion.objects.count) == 1
    assert len(puts) == 1
    assert page.complaints == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("moment", ["begun", "answered", "read"])
def test_a_pause_before_there_is_an_upload_makes_none(
    page: Page, tmp_path: Path, moment: str
) -> None:
    chosen(page, tmp_path)
    puts = puts_of(page)
    select_at(page, moment, "/preview")
    page.click("#send")

    expect(page.locator("#send")).to_be_enabled()
    expect(page.locator("#progress")).to_be_hidden()
    expect(page.locator("#problem")).to_be_hidden()
    assert puts == []
    assert apart(ModelVersion.objects.count) == 0
    page.click("#send")
    wait_for_verification(page)
    assert apart(ModelVersion.objects.count) == 1


def test_a_pause_while_the_file_is_digested_makes_no_upload(page: Page, tmp_path: Path) -> None:
    chosen(page, tmp_path)
    page.evaluate(
        """() => {
          const digest = crypto.subtle.digest.bind(crypto.subtle);
          let isOver = false;
          crypto.subtle.digest = (...given) => {
            if (!isOver) document.querySelector("#pause").click();
            isOver = true;
            return digest(...given);
          };
        }"""
    )
    page.click("#send")

    expect(page.locator("#send")).to_be_enabled()
    expect(page.locator("#progress")).to_be_hidden()
    assert apart(ModelVersion.objects.count) == 0
    page.click("#send")
    wait_for_verification(page)


def test_a_pause_while_object_storage_fails_is_a_pause(page: Page, tmp_path: Path) -> None:
    chosen(page, tmp_path)

    def fail(route: Route) -> None:
        page.evaluate("() => document.querySelector('#pause').click()")
        route.abort()

    page.context.route("**/detector.onnx?*", fail, times=1)
    page.click("#send")

    expect(page.locator("#progress-status")).to_have_text(PAUSED)
    expect(page.locator("#problem")).to_be_hidden()
    page.click("#pause")
    wait_for_verification(page)


def test_an_upload_that_is_canceled_while_it_is_made_is_canceled(
    page: Page, tmp_path: Path
) -> None:
    chosen(page, tmp_path)
    puts = puts_of(page)
    select_at(page, "begun", "/versions", "#abandon")
    page.click("#send")

    expect(page.locator("#file-note")).to_have_text("Upload canceled. Sent parts were deleted.")
    expect(page.locator("#progress")).to_be_hidden()
    assert puts == []
    assert apart(lambda: ModelVersion.objects.get().state) == VersionState.FAILED
    page.click("#send")
    wait_for_verification(page)


@pytest.mark.usefixtures("folder_format")
def test_parts_that_are_missing_when_files_are_assembled_are_sent_again(
    page: Page, tmp_path: Path
) -> None:
    """Files are assembled 25 at a time while others are sent."""
    files = {f"{number}.txt": b"x" for number in range(26)}
    folder = write(tmp_path / "detector", {**files, "1/model.onnx": onnx_models.linear()})
    problem = {"code": "parts_missing", "detail": "Part 1 of 0.txt is missing."}
    page.context.route(
        "**/files/complete", lambda route: route.fulfill(status=409, json=problem), times=1
    )
    page.goto("/vision/upload")
    page.set_input_files("#folder", folder)
    page.click("#send")

    wait_for_verification(page)
    assert apart(ModelVersion.objects.count) == 1
