"""The upload page in Debian's Chromium, against the real S3 server, under the real CSP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, Page

from deployments.registry.gateways import bucket_setup
from deployments.registry.gateways.object_store import S3Store
from tests.deployments.browsing import chromium_for_tests
from tests.deployments.uploading import People
from tests.waiting import PATIENCE_MS


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_for_tests() as running:
        yield running


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """One program for a module, whose start takes as long as a test: nothing of a test stays in it."""
    yield chromium
    for context in chromium.contexts:
        context.close()


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
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    # What the console says, for the assertions.
    page.complaints = complaints  # type: ignore[attr-defined]  # a place to keep them
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page
