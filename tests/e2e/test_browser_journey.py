"""The main job as two people do it in a browser: upload, request, approve, answers, figures."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.e2e import browsers
from tests.e2e.browsers import Pages, browser, page_of
from tests.e2e.demo_process import ROOT, DemoProcess
from tests.e2e.rest import Classifier, Person

__all__ = ["browser", "page_of"]
pytestmark = browsers.marks
NAME = "filetype-web"


def upload(page: Page, demo: DemoProcess) -> None:
    page.goto("/upload")
    page.set_input_files("#file", demo.samples / "filetype.onnx")
    page.locator("[name=model]").fill(NAME)
    page.locator("[name=metrics]").fill("accuracy = 0.99")
    page.locator("#send").click()
    anyway = page.locator("#anyway")
    expect(page.locator("#anyway:visible, #verification:visible").first).to_be_visible()
    if anyway.is_visible():
        # Another test of this run has uploaded the same bytes.
        anyway.click()
    expect(page.locator("#verification")).to_have_attribute("data-state", "ready")


def request_deployment(page: Page) -> None:
    page.get_by_role("link", name="Deploy", exact=True).click()
    expect(page.locator("[name=name]")).to_have_value(NAME)
    page.locator("[name=network_access]").select_option("open")
    page.get_by_role("radio", name=re.compile("^1 . T4")).check()
    page.get_by_role("button", name="Continue to scaling").last.click()
    page.get_by_text("Resources and network", exact=True).click()
    page.locator("[name=memory]").fill("2Gi")
    page.get_by_role("button", name="Continue to review").last.click()
    expect(page.locator("#side")).to_contain_text("$")
    page.locator("[name=comment]").fill("Tells what kind of file an attachment is.")
    page.get_by_role("button", name="Request deployment").click()
    page.wait_for_url(re.compile(rf"/(approvals/\d+|deployments/vision/{NAME})"))


def approve(page: Page) -> None:
    page.goto("/approvals")
    page.get_by_role("link", name=re.compile(NAME)).first.click()
    expect(page.get_by_text("Tells what kind of file an attachment is.")).to_be_visible()
    expect(page.get_by_text("Everyone who reaches the gateway gets answers")).to_be_visible()
    page.get_by_role("button", name=re.compile("Approve")).click()
    expect(page.get_by_text(re.compile("approved", re.IGNORECASE)).first).to_be_visible()


def see_nothing_of_it(page: Page) -> None:
    answer = page.goto(f"/deployments/vision/{NAME}")

    assert answer
    assert answer.status == 404
    page.goto("/deployments")
    expect(page.get_by_role("link", name=NAME)).to_have_count(0)


def test_dropped_file_answers_requests_and_its_price_shows_to_its_team_only(
    demo: DemoProcess, page_of: Pages, member: Person, lead: Person
) -> None:
    page = page_of("member")
    upload(page, demo)
    request_deployment(page)
    approve(page_of("lead"))

    page.goto(f"/deployments/vision/{NAME}")
    expect(page.locator("main .pill", has_text="Ready").first).to_be_visible(timeout=90_000)
    address = page.locator("main").get_by_text(re.compile(rf"^http://.*/vision/{NAME}$")).first
    classifier = Classifier(demo, address.inner_text().strip(), NAME)
    for kind, path in {"python": "manage.py", "yaml": "docker-compose.yml"}.items():
        assert classifier.kind_of((ROOT / path).read_bytes()) == kind
    for _ in range(30):
        classifier.kind_of(b"#!/usr/bin/env python\nimport os\nprint(os.getcwd())\n")

    page.goto("/")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=NAME, exact=True))
    expect(row.locator("[data-label=Latency]")).to_contain_text("ms")
    expect(row.locator("[data-label='req/s']")).to_contain_text(re.compile(r"\d"))
    expect(row.locator("[data-label='$/day']")).to_contain_text("$")
    expect(page.locator("[data-live=home-requests]")).to_contain_text("/s")
    expect(page.locator("[data-live=home-spend]")).to_contain_text("$")

    see_nothing_of_it(page_of("nlp-member"))
    member.retire(member.deployment_named(NAME)["id"], approved_by=lead)
