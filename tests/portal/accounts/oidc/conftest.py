from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from portal.accounts.oidc import rules
from portal.accounts.oidc.providers import Provider
from tests import plain_http
from tests.waiting import PATIENCE_SECONDS

RULES = rules.parse(
    """
    groups=vision-leads -> vision lead
    groups=slipway-{team} -> {team} member
    groups=slipway-admins -> platform-admin
    """
)


@dataclass(frozen=True)
class Server:
    """The running provider; `url` is its issuer."""

    url: str

    def set_claims(self, subject: str, **claims: Any) -> None:
        plain_http.client.put(f"{self.url}/users/{subject}", json=claims).raise_for_status()

    def set_mode(self, name: str) -> None:
        plain_http.client.put(f"{self.url}/mode/{name}").raise_for_status()

    def consent(self, address: str, subject: str) -> str:
        """What a person does at the provider; the address that it sends the browser back to."""
        answer = plain_http.client.post(address, data={"sub": subject})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]


@pytest.fixture(scope="module")
def process() -> Iterator[str]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.portal.accounts.oidc.server"]
    environment = {**os.environ, "AUTHLIB_INSECURE_TRANSPORT": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        port = running.stdout.readline().strip()
        assert port.isdigit()
        yield f"http://127.0.0.1:{port}"
        running.terminate()


@pytest.fixture
def server(process: str) -> Server:
    cache.clear()
    running = Server(process)
    running.set_mode("right")
    return running


@pytest.fixture
def provider(server: Server, settings: Any) -> Provider:
    configured = Provider(
        name="lab",
        label="Lab",
        issuer=server.url,
        client_id="slipway",
        client_secret="not a secret",
        rules=RULES,
    )
    settings.SLIPWAY_OIDC = (configured,)
    settings.SOCIALACCOUNT_REQUESTS_TIMEOUT = PATIENCE_SECONDS
    return configured


SignIn = Callable[..., Any]


@pytest.fixture
def sign_in(client: Client, server: Server, provider: Provider) -> SignIn:
    def run(subject: str, *, browser: Client = client, next_path: str = "") -> Any:
        start = browser.get("/sign-in/with/lab", {"next": next_path})
        assert start.status_code == 302, start.content.decode()
        return browser.get(server.consent(start["Location"], subject))

    return run
