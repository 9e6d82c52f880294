"""Which addresses are outside the portal's own network.

The portal runs inside the network, so an address from a user could make it call internal hosts (SSRF).
"""

from __future__ import annotations

import ipaddress
from typing import Final

# Global unicast. Excludes ::127.0.0.1 and 64:ff9b::10.0.0.1, which embed IPv4 hosts, and site-local
# addresses.
_UNICAST: Final = ipaddress.ip_network("2000::/3")
# Teredo, 6to4 and its relays embed IPv4 hosts.
_HIDING: Final = tuple(
    ipaddress.ip_network(net) for net in ("2001::/23", "2002::/16", "192.88.99.0/24")
)


def is_public(address: str) -> bool:
    """Whether an IP address is public, also where an IPv6 address embeds an IPv4 one."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_public(str(ip.ipv4_mapped))
        if ip not in _UNICAST:
            return False
    return (
        ip.is_global
        and not ip.is_multicast
        and not any(ip.version == net.version and ip in net for net in _HIDING)
    )
