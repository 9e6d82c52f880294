"""Who a request comes from. X-Forwarded-For is believed only from the proxies that are configured:
anybody else can write into it what they like.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

from django.conf import settings
from django.http import HttpRequest

# What one household or office gets; all its addresses are one client's.
_IPV6_PREFIX = 64


def client_address(request: HttpRequest) -> str:
    """The address itself, or what the server has in its place (empty for a Unix socket)."""
    peer = str(request.META.get("REMOTE_ADDR", ""))
    address = _read(peer)
    if not _is_proxy(address):
        return peer
    # The last entry was added by our proxy, the one before it by whoever spoke to that proxy.
    for text in reversed(request.headers.get("X-Forwarded-For", "").split(",")):
        hop = _read(text.strip())
        if hop is None:
            break
        address = hop
        if not _is_proxy(hop):
            break
    return str(address)


def client_network(request: HttpRequest) -> str:
    """The address, or the /64 that it is in: one client has all of those."""
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
