"""The client address of a request. X-Forwarded-For counts only when a configured proxy sends it,
because anybody else can forge it.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

from django.conf import settings
from django.http import HttpRequest

# The typical allocation of one site; all its addresses count as one client.
_IPV6_PREFIX = 64


def client_address(request: HttpRequest) -> str:
    """Return the client's address. Empty for a Unix socket."""
    peer = str(request.META.get("REMOTE_ADDR", ""))
    address = _read(peer)
    if not _is_proxy(address):
        return peer
    # From right to left: each trusted proxy appended the address of its own client.
    for text in reversed(request.headers.get("X-Forwarded-For", "").split(",")):
        hop = _read(text.strip())
        if hop is None:
            break
        address = hop
        if not _is_proxy(hop):
            break
    return str(address)


def client_network(request: HttpRequest) -> str:
    """Return the IPv4 address, or the /64 network of an IPv6 address."""
    text = client_address(request)
    address = _read(text)
    if isinstance(address, IPv6Address):
        return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
    return text


def _read(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _is_proxy(address: IPv4Address | IPv6Address | None) -> bool:
    return address is not None and any(
        address in network for network in settings.SLIPWAY_TRUSTED_PROXIES
    )
