"""What people do in a browser on the way from a file to answers."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect


def upload(page: Page, file: Path, name: str) -> None:
    page.goto("/vision/upload")
    page.set_input_files("#file", file)
    page.locator("[name=model]").fill(name)
    page.get_by_text("Details", exact=True).click()
    page.locator("[name=metrics]").fill("accuracy = 0.99")
    page.locator("#send").click()
    anyway = page.locator("#anyway")
    expect(page.locator("#anyway:visible, #verification:visible").first).to_be_visible()
    if anyway.is_visible():
        # Another test of this run has uploaded the same bytes.
        anyway.click()
    expect(page.locator("#verification")).to_have_attribute("data-state", "ready")


def request_deployment(page: Page, name: str) -> None:
    page.get_by_role("link", name="Deploy", exact=True).click()
    expect(page.locator("[name=name]")).to_have_value(name)
    page.locator("[name=network_access]").select_option("open")
    page.locator("#section-gpu > summary").click()
    page.get_by_role("radio", name=re.compile("^1 . T4")).check()
    page.locator("#section-resources > summary").click()
    page.locator("[name=memory]").fill("2Gi")
    page.locator("#section-comment > summary").click()
    page.locator("[name=comment]").fill("Tells what kind of file an attachment is.")
    expect(page.locator("#side")).to_contain_text("$")
    page.get_by_role("button", name="Request deployment").click()
    page.wait_for_url(re.compile(rf"/(approvals/\d+|vision/deployments/{name})"))


def approve(page: Page, name: str) -> None:
    page.goto("/approvals")
    page.get_by_role("link", name=re.compile(name)).first.click()
    expect(page.get_by_text("Tells what kind of file an attachment is.")).to_be_visible()
    expect(
        page.get_by_text("Anyone who reaches the gateway can call it, without a key.")
    ).to_be_visible()
    page.get_by_role("button", name=re.compile("Approve")).click()
    expect(page.get_by_text(re.compile("approved", re.IGNORECASE)).first).to_be_visible()
