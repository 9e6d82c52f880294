"""Probes of the web process."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from portal.api import health

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("path", "message"),
    [("/healthz", "process: ok\n"), ("/readyz", "database: ok\nbroker: ok\n")],
)
def test_anyone_may_read_whether_it_runs(path: str, message: str) -> None:
    answer = Client().get(path)

    assert (answer.status_code, answer.content.decode()) == (200, message)
    assert answer["Content-Type"] == "text/plain"
    assert Client().post(path).status_code == 405


def test_a_probe_without_tls_is_answered(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True

    assert Client().get("/readyz").status_code == 200
    assert Client().get("/sign-in").status_code == 301


# What a load balancer or a kubelet sends as the host, and what a scanner may.
_HOSTS = (
    "10.0.3.17:8000",
    "[fd00::17]:8000",
    "ip-10-0-3-17.ec2.internal",
    "evil.example.org",
    "_",
    "",
)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("host", _HOSTS)
@pytest.mark.parametrize("is_forwarded", [False, True])
def test_probes_are_answered_under_any_host(
    path: str, host: str, is_forwarded: bool, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["slipway.example.org"]
    settings.SECURE_SSL_REDIRECT = True
    headers = {"host": host} | ({"x-forwarded-host": host} if is_forwarded else {})

    assert Client().get(path, headers=headers).status_code == 200
    assert Client().head(path, headers=headers).status_code == 200


def test_a_broker_that_is_away_is_named_and_takes_no_pod_out(settings: Any) -> None:
    settings.SLIPWAY_REDIS_URL = "redis://127.0.0.1:1/0"

    answer = Client().get("/readyz")

    assert answer.status_code == 200
    assert answer.content.decode() == "database: ok\nbroker: does not answer\n"
    assert Client().get("/healthz").status_code == 200


def test_a_database_error_is_logged_and_not_returned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OperationalError("password of slipway refused")

    monkeypatch.setattr(health, "_NEEDED", {"database": fail})

    answer = Client().get("/readyz")

    assert (answer.status_code, answer.content) == (
        503,
        b"database: does not answer\nbroker: ok\n",
    )
    assert "password of slipway refused" in caplog.text
