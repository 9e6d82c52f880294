"""Cookies of an installation with HTTPS, what sign-out leaves in the browser, and methods that nobody needs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from django.test import Client

from portal.ui.context import THEME_COOKIE
from tests.accounts import make_user

_PRINT = """
from django.conf import settings as s
print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE)
"""


@pytest.mark.parametrize(
    ("https", "printed"),
    [
        ("1", "__Host-sessionid __Host-csrftoken True True"),
        ("0", "sessionid csrftoken False False"),
    ],
)
def test_with_https_cookies_are_of_this_host_and_tls_only(https: str, printed: str) -> None:
    environment = {**os.environ, "SLIPWAY_HTTPS": https}
    done = subprocess.run(
        [sys.executable, "-c", _PRINT], env=environment, check=True, capture_output=True, text=True
    )

    assert done.stdout.strip() == printed


@pytest.mark.django_db
def test_cookies_are_read_by_the_server_only_and_stay_on_this_site(
    client: Client, settings: Any
) -> None:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    user = make_user()
    user.set_password("three grey herons")
    user.save()

    client.post("/sign-in", {"username": user.username, "password": "three grey herons"})
    client.post("/theme", {"theme": "dark"})

    cookies = {cookie.key: cookie for cookie in client.cookies.values()}
    assert {settings.SESSION_COOKIE_NAME, THEME_COOKIE} <= set(cookies)
    for name, cookie in cookies.items():
        assert (cookie["secure"], cookie["samesite"]) == (True, "Lax"), name
        assert cookie["path"] == "/", name
        assert cookie["httponly"] or name == settings.CSRF_COOKIE_NAME, name


@pytest.mark.django_db
def test_sign_out_clears_the_storage_of_the_browser(client: Client) -> None:
    client.force_login(make_user())

    response = client.post("/sign-out")

    assert response.status_code == 302
    assert response["Clear-Site-Data"] == '"storage"'
    assert client.get("/account/security").status_code == 302


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/sign-in", "/healthz", "/api/v1/models"])
def test_trace_echoes_nothing(client: Client, path: str) -> None:
    client.force_login(make_user())

    response = client.generic("TRACE", path, headers={"X-Echo": "echo-me"})

    assert response.status_code == 405
    assert b"echo-me" not in response.content
