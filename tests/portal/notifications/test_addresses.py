from __future__ import annotations

import socket

import pytest

from portal.core.errors import Invalid
from portal.notifications import addresses


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "192.88.99.1",
        "224.0.0.1",
        "::1",
        "::",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::808:808",
        "64:ff9b:1::a00:1",
        "2002:0a00:0001::1",
        "2002:0808:0808::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "100::1",
    ],
)
def test_addresses_inside_and_those_that_hide_one_are_not_public(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(0, 0, 0, "", (address, 443))])

    with pytest.raises(Invalid, match="inside the portal's own network"):
        addresses.check("webhook", "https://hooks.example.org/x")


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are_accepted(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(0, 0, 0, "", (address, 443))])

    assert addresses.check("webhook", "https://hooks.example.org/x").hint == "hooks.example.org"


def test_one_private_address_among_public_ones_refuses_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [(0, 0, 0, "", (address, 443)) for address in ("8.8.8.8", "64:ff9b::7f00:1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: answers)

    with pytest.raises(Invalid):
        addresses.check("webhook", "https://hooks.example.org/x")
