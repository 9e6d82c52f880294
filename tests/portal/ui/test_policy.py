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
    *("/sign-in", "/session", "/healthz", "/readyz"),
    # Public keys, for whoever checks a caller's.
    "/.well-known/jwks.json",
    # For people without a session; a link that was not opened is told so.
    *("/invitation", "/password-link", "/sign-in/forgotten"),
}


def test_every_page_sends_the_strict_policy(admin_browser: Client) -> None:
    answers = {path: admin_browser.get(path) for path in _plain_pages()}

    assert len(answers) > 60
    assert {path: a.status_code for path, a in answers.items() if a.status_code >= 500} == {}
    policies = {path: answer["Content-Security-Policy"] for path, answer in answers.items()}
    assert {path: policy for path, policy in policies.items() if not _is_strict(policy)} == {}


def _is_strict(policy: str) -> bool:
    return (
        "default-src 'self'" in policy
        and "unsafe" not in policy
        and "frame-ancestors 'none'" in policy
        and "script-src" not in policy
    )


def test_every_page_sends_strangers_to_the_sign_in(client: Client) -> None:
    answers = {path: client.get(path) for path in _plain_pages() if path not in _OPEN}

    shown = {
        path: (answer.status_code, answer.get("Location", ""))
        for path, answer in answers.items()
        if answer.status_code != 405
    }
    assert len(shown) > 40
    assert {
        path: (status, location)
        for path, (status, location) in shown.items()
        if status != 302 or not location.startswith("/sign-in")
    } == {}
