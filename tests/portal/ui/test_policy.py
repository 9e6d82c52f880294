"""The content security policy is strict on every page, for everyone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, get_resolver

from portal.accounts.models import Team, User

pytestmark = pytest.mark.django_db


def _plain_pages() -> list[str]:
    """Every page address without parameters."""
    return sorted(
        f"/{pattern.pattern}"
        for pattern in _patterns(get_resolver().url_patterns)
        if "<" not in str(pattern.pattern)
    )


def _patterns(patterns: list[Any]) -> list[URLPattern]:
    flat: list[URLPattern] = []
    for entry in patterns:
        if isinstance(entry, URLPattern):
            flat.append(entry)
        elif not str(entry.pattern):
            flat += _patterns(entry.url_patterns)
    return flat


@pytest.fixture
def admin_browser() -> Client:
    Team.objects.create(slug="vision", name="Vision", created_at=datetime(2026, 11, 1, tzinfo=UTC))
    client = Client()
    client.force_login(User.objects.create_user("ada", is_platform_admin=True))
    return client


# The session endpoint answers 401 with a body that a script reads.
_OPEN = {
    *("/sign-in", "/session", "/api/docs", "/healthz", "/readyz"),
    # Public keys, for whoever checks a caller's.
    "/.well-known/jwks.json",
    # For people without a session; a link that was not opened is told so.
    *("/invitation", "/password-link", "/sign-in/forgotten"),
}


@pytest.mark.parametrize("path", _plain_pages())
def test_every_page_sends_the_strict_policy(path: str, admin_browser: Client) -> None:
    answer = admin_browser.get(path)
    policy = answer["Content-Security-Policy"]

    assert answer.status_code < 500
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src" not in policy


@pytest.mark.parametrize("path", _plain_pages())
def test_every_page_sends_strangers_to_the_sign_in(path: str, client: Client) -> None:
    answer = client.get(path)

    is_post_only = answer.status_code == 405
    if not is_post_only and path not in _OPEN:
        assert answer.status_code == 302
        assert answer["Location"].startswith("/sign-in")
