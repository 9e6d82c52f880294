"""A passkey from the first click to a sign-in and a confirmation, in Chromium with a virtual authenticator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.accounts.local.models import Passkey
from portal.accounts.models import User
from tests import screenshots
from tests.browser_console import complaints_of
from tests.deployments.browsing import chromium_for_tests

PASSWORD = "two brown otters swim"
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
def tab(chromium: Browser, live_server: LiveServer) -> Iterator[Page]:
    context = chromium.new_context(base_url=live_server.url.replace("127.0.0.1", "localhost"))
    page = context.new_page()
    devtools = context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    devtools.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
        },
    )
    yield page
    context.close()


def _sign_in(tab: Page) -> None:
    tab.goto("/sign-in")
    tab.get_by_label("Username").fill("ana")
    tab.get_by_label("Password").fill(PASSWORD)
    tab.get_by_role("button", name="Sign in", exact=True).click()


def test_a_passkey_is_added_signs_in_and_confirms(tab: Page, settings: Any) -> None:
    settings.SLIPWAY_STEP_UP_MINUTES = 15
    User.objects.create_user("ana", "ana@example.org", PASSWORD)
    complaints = complaints_of(tab)
    _sign_in(tab)
    tab.goto("/account/second-factor/passkeys")
    tab.get_by_label("Name").fill("Work laptop")
    tab.get_by_label("Your password").fill(PASSWORD)
    tab.get_by_role("button", name="Add passkey").click()
    expect(tab.get_by_role("heading", name="Keep your recovery codes")).to_be_visible()
    assert Passkey.objects.get().name == "Work laptop"

    tab.context.clear_cookies()
    _sign_in(tab)
    tab.get_by_role("button", name="Use a passkey").click()
    expect(tab).not_to_have_url(re.compile("/sign-in"))
    tab.goto("/confirm?next=/account/security")
    tab.get_by_role("button", name="Confirm with a passkey").click()

    expect(tab.get_by_role("heading", name="Sign-in and sessions")).to_be_visible()
    expect(tab.get_by_text("with password and passkey").first).to_be_visible()
    row = Passkey.objects.get()
    assert row.last_used_at is not None
    assert complaints == []
