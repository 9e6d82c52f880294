"""X-Forwarded-For counts only when a configured proxy wrote it."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from django.test import RequestFactory

from portal.core.client_address import client_address, client_network

PROXIES = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]


def address(peer: str, forwarded: str | None = None) -> str:
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    return client_address(RequestFactory().get("/", headers=headers, REMOTE_ADDR=peer))


def test_nobody_is_believed_by_default() -> None:
    assert address("203.0.113.7", "198.51.100.1") == "203.0.113.7"
    assert address("10.0.0.1", "198.51.100.1") == "10.0.0.1"


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        # What the client itself wrote stands before what the proxy added.
        ("10.0.0.1", "1.2.3.4, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("fd00::1", "2001:db8::5", "2001:db8::5"),
        ("203.0.113.7", "198.51.100.1", "203.0.113.7"),
        ("10.0.0.1", "rubbish", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1, rubbish", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("", "198.51.100.1", ""),
    ],
)
def test_behind_a_proxy_the_client_is_the_last_that_it_names(
    peer: str, forwarded: str | None, expected: str, settings: Any
) -> None:
    settings.SLIPWAY_TRUSTED_PROXIES = PROXIES

    assert address(peer, forwarded) == expected


@pytest.mark.parametrize(
    ("peer", "expected"),
    [("2001:db8::5", "2001:db8::/64"), ("203.0.113.7", "203.0.113.7"), ("unix", "unix")],
)
def test_an_ipv6_client_is_its_network(peer: str, expected: str) -> None:
    assert client_network(RequestFactory().get("/", REMOTE_ADDR=peer)) == expected
