"""The client on the real application: its requests go through Django's WSGI handler in this thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections

from deployments.rollouts.api import events
from portal.accounts import tokens
from portal.accounts.models import User
from portal.accounts.scopes import Scope
from slipway_client import Client, RetryPolicy
from tests.deployments.uploading import people
from tests.deployments.world import cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "people", "world"]

PORTAL = "http://testserver"
AT_ONCE = RetryPolicy(first_pause_seconds=0.0)
ClientOf = Callable[..., Client]


@pytest.fixture(autouse=True)
def own_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the login of the person who runs it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SLIPWAY_URL", raising=False)
    monkeypatch.delenv("SLIPWAY_TOKEN", raising=False)
    monkeypatch.delenv("SLIPWAY_CALLER_KEY", raising=False)


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """Requests run in the transaction of the test, as with Django's own test client."""
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    yield
    request_started.connect(close_old_connections)
    request_finished.connect(close_old_connections)


@pytest.fixture
def short_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream ends with what there is, so that the test can let the next thing happen."""
    monkeypatch.setattr(events, "_STREAM_SECONDS", 0)


def portal_transport() -> httpx.BaseTransport:
    application: Any = get_wsgi_application()
    return httpx.WSGITransport(app=application, raise_app_exceptions=True)


@pytest.fixture
def client_of() -> ClientOf:
    """A client with a token of `user`; `transport` stands between it and the portal."""

    def make(user: User, transport: httpx.BaseTransport | None = None) -> Client:
        token = tokens.create(actor=user, name="client", scopes=list(Scope)).plain
        return Client(PORTAL, token, transport=transport or portal_transport(), retry=AT_ONCE)

    return make
