"""The main job as two people do it in a browser: upload, request, approve, answers, figures."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.e2e import browser_steps, browsers
from tests.e2e.browsers import Pages, browser, page_of
from tests.e2e.demo_process import ROOT, DemoProcess
from tests.e2e.rest import Classifier, Person

__all__ = ["browser", "page_of"]
pytestmark = browsers.marks
NAME = "filetype-web"


def see_nothing_of_it(page: Page) -> None:
    answer = page.goto(f"/vision/deployments/{NAME}")

    assert answer
    assert answer.status == 404
    page.goto("/vision/deployments")
    expect(page.get_by_role("link", name=NAME)).to_have_count(0)


def test_dropped_file_answers_requests_and_its_price_shows_to_its_team_only(
    demo: DemoProcess, page_of: Pages, member: Person, lead: Person
) -> None:
    page = page_of("member")
    browser_steps.upload(page, demo.samples / "filetype.onnx", NAME)
    browser_steps.request_deployment(page, NAME)
    browser_steps.approve(page_of("lead"), NAME)

    page.goto(f"/vision/deployments/{NAME}")
    expect(page.locator("main .pill", has_text="Ready").first).to_be_visible(timeout=90_000)
    address = page.locator("main").get_by_text(re.compile(rf"^http://.*/vision/{NAME}$")).first
    classifier = Classifier(demo, address.inner_text().strip(), NAME)
    for kind, path in {"python": "manage.py", "yaml": "docker-compose.yml"}.items():
        assert classifier.kind_of((ROOT / path).read_bytes()) == kind
    for _ in range(30):
        classifier.kind_of(b"#!/usr/bin/env python\nimport os\nprint(os.getcwd())\n")

    page.goto("/vision")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=NAME, exact=True))
    expect(row.locator("[data-label=Latency]")).to_contain_text("ms")
    expect(row.locator("[data-label='req/s']")).to_contain_text(re.compile(r"\d"))
    expect(row.locator("[data-label='$/day']")).to_contain_text("$")
    expect(page.locator("[data-live=home-requests]")).to_contain_text("/s")
    expect(page.locator("[data-live=home-spend]")).to_contain_text("$")

    see_nothing_of_it(page_of("nlp-member"))
    member.retire(member.deployment_named(NAME)["id"], approved_by=lead)
