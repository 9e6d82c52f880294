"""Who may read /metrics: nobody, unless a token or networks are set."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

_FORWARDED = ("X-Forwarded-For", "Forwarded")


def is_offered() -> bool:
    return bool(settings.SLIPWAY_METRICS_TOKEN or settings.SLIPWAY_METRICS_NETWORKS)


def is_allowed(request: HttpRequest) -> bool:
    return _has_token(request) or _is_in_network(request)


def _has_token(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    expected = settings.SLIPWAY_METRICS_TOKEN
    is_bearer = scheme.lower() == "bearer"
    return bool(expected) and is_bearer and constant_time_compare(token.strip(), expected)


def _is_in_network(request: HttpRequest) -> bool:
    """Return whether a direct request comes from an allowed network. False for forwarded ones: behind a load
    balancer everybody has its address.
    """
    if any(name in request.headers for name in _FORWARDED):
        return False
    try:
        address = ipaddress.ip_address(str(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in network for network in settings.SLIPWAY_METRICS_NETWORKS)
