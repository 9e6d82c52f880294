"""Who reads /metrics: nobody by default, then who has the token or comes directly from a network."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from django.test import Client

from portal import env
from tests.accounts import make_user
from tests.portal.monitoring.exposition import scrape


def test_it_is_not_there_unless_someone_may_read_it(db: None) -> None:
    assert Client().get("/metrics").status_code == 404


def test_an_admin_who_is_signed_in_is_not_enough(offered: Any) -> None:
    client = Client()
    client.force_login(make_user(username="root", is_platform_admin=True))

    assert client.get("/metrics").status_code == 401


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {scrape.TOKEN}x",
        f"Basic {scrape.TOKEN}",
        f"Bearer {scrape.TOKEN[:-1]}",
        "Bearer \u00e9",
    ],
)
def test_another_token_is_refused(offered: Any, header: str) -> None:
    response = Client().get("/metrics", headers={"authorization": header})

    assert response.status_code == 401
    assert response.content == b""
    assert response["WWW-Authenticate"] == "Bearer"


def test_the_token_is_enough_from_anywhere(offered: Any) -> None:
    response = scrape.get(REMOTE_ADDR="203.0.113.9")

    assert response.status_code == 200
    assert response["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert response["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in response


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("10.1.2.3", 200),
        ("::ffff:10.1.2.3", 200),
        ("10.2.0.1", 401),
        ("203.0.113.9", 401),
        ("", 401),
        ("not-an-address", 401),
    ],
)
def test_a_network_is_enough(settings: Any, db: None, address: str, status: int) -> None:
    settings.SLIPWAY_METRICS_NETWORKS = [ip_network("10.1.0.0/16")]

    assert Client().get("/metrics", REMOTE_ADDR=address).status_code == status


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded"])
def test_behind_a_load_balancer_the_network_is_not_enough(
    settings: Any, db: None, header: str
) -> None:
    """Everybody has the load balancer's address there, and may write any header."""
    settings.SLIPWAY_METRICS_NETWORKS = settings.SLIPWAY_TRUSTED_PROXIES = [
        ip_network("10.1.0.0/16")
    ]

    response = Client().get("/metrics", REMOTE_ADDR="10.1.2.3", headers={header: "10.1.2.4"})

    assert response.status_code == 401


def test_a_pod_is_scraped_by_its_address_without_tls(offered: Any) -> None:
    offered.SECURE_SSL_REDIRECT = True

    assert scrape.get(HTTP_HOST="10.1.2.3:8000").status_code == 200
    assert Client().get("/sign-in", HTTP_HOST="10.1.2.3:8000").status_code == 400


def test_it_is_only_read(offered: Any) -> None:
    headers = {"authorization": f"Bearer {scrape.TOKEN}"}

    assert Client().post("/metrics", headers=headers).status_code == 405
    assert Client().head("/metrics", headers=headers).status_code == 200


def test_a_short_token_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPWAY_METRICS_TOKEN", "fifteen-letters")

    with pytest.raises(env.BadEnvironment, match="16 random characters"):
        env.optional_secret("SLIPWAY_METRICS_TOKEN", least_characters=16)
