"""Real browsers of people who are signed in to the demo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests import screenshots
from tests.e2e.demo_process import DemoProcess
from tests.waiting import PATIENCE_MS

CHROMIUM = screenshots.chromium_path()
marks = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
Pages = Callable[[str], Page]


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page_of(demo: DemoProcess, browser: Browser, tmp_path: Path) -> Iterator[Pages]:
    """Signs a person in, in a browser context of their own; fails on what the console complains of."""
    pages: dict[str, Page] = {}
    complaints: list[str] = []

    def open_page(name: str) -> Page:
        pages[name] = sign_in(browser, demo, name, complaints)
        return pages[name]

    yield open_page
    for name, page in pages.items():
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
    assert complaints == []


def sign_in(browser: Browser, demo: DemoProcess, name: str, complaints: list[str]) -> Page:
    """The home page of a person in a context of their own. Errors of its scripts are added to `complaints`."""
    context = browser.new_context(base_url=demo.url)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(f"{name}: {error}"))
    page.goto("/sign-in")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(demo.password(name))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    return page
