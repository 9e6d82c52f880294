"""A page in Debian's Chromium whose clock only moves when a test moves it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, Response, ViewportSize

from portal.accounts.models import User
from tests import screenshots

SEEN: ViewportSize = {"width": 1280, "height": 800}


@contextmanager
def chromium_for_tests() -> Iterator[Browser]:
    # Playwright's own event loop runs in this thread; Django would refuse the test's queries.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    try:
        with screenshots.browser() as running:
            yield running
    finally:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def signed_in_context(browser: Browser, base_url: str, user: User) -> BrowserContext:
    client = Client()
    client.force_login(user)
    context = browser.new_context(
        base_url=base_url, viewport=SEEN, color_scheme="light", reduced_motion="reduce"
    )
    session = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": session, "url": base_url}])
    return context


def polled(page: Page, target: str, *, seconds: int) -> int:
    """Move the page's clock until the fragment was requested, and return the response's status."""

    def is_it(answer: Response) -> bool:
        return answer.request.headers.get("hx-target") == target

    with page.expect_response(is_it) as caught:
        page.clock.run_for(seconds * 1000)
    caught.value.finished()
    # Swapping and settling are timers of the page too.
    page.clock.run_for(50)
    return caught.value.status
