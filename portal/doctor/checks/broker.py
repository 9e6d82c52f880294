"""Valkey: reachable, keeping what it is given, never dropping messages for want of memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import redis
from django.conf import settings

from portal.doctor.lines import Line, note, ok, report_failed
from portal.doctor.registry import check

_AREA: Final = "broker"
_SECONDS: Final = 3.0
_OLDEST: Final = 6
_FULL: Final = 0.9
_REACH: Final = (
    "Check host, port and password of SLIPWAY_REDIS_URL, and the security group between the portal and "
    "the server."
)


def connect() -> Any:
    return redis.Redis.from_url(
        settings.SLIPWAY_REDIS_URL, socket_connect_timeout=_SECONDS, socket_timeout=_SECONDS
    )


@check(_AREA, "Valkey", fix=_REACH)
def server() -> Iterator[Line]:
    with connect() as client:
        about = client.info()
    name = "Valkey" if "valkey_version" in about else "Redis"
    version = str(about.get("valkey_version") or about["redis_version"])
    if int(version.split(".", maxsplit=1)[0]) < _OLDEST:
        yield report_failed("Valkey", f"{name} {version}", "Use Valkey 8 or newer.")
    else:
        yield ok("Valkey", f"{name} {version} responds")
    yield _eviction(about)
    yield _persistence(about)
    limit = int(about.get("maxmemory", 0))
    if limit and about["used_memory"] > limit * _FULL:
        share = 100 * about["used_memory"] // limit
        yield report_failed(
            "Memory", f"{share}% of {limit // 2**20} MiB are used", "Give it more memory."
        )


@check(_AREA, "Encryption", fix=_REACH)
def encryption() -> Iterator[Line]:
    address = urlsplit(settings.SLIPWAY_REDIS_URL)
    if address.hostname in ("127.0.0.1", "localhost", "::1") or address.scheme == "unix":
        return
    if address.scheme != "rediss":
        fix = "Turn on encryption in transit, and begin SLIPWAY_REDIS_URL with rediss://."
        yield report_failed(
            "Encryption", "sessions' limits and task messages travel unencrypted", fix
        )
    if not address.password:
        fix = "Set a password (AUTH or a user), and write it into SLIPWAY_REDIS_URL."
        yield report_failed(
            "Password", "anyone who reaches the server can send tasks to the workers", fix
        )


def _eviction(about: dict[str, Any]) -> Line:
    rule = about.get("maxmemory_policy", "")
    if rule == "noeviction" or not rule:
        return ok("Eviction", "noeviction")
    return report_failed(
        "Eviction",
        f"{rule}: when memory is full, messages and limits of sign-ins are dropped",
        "Set maxmemory-policy to noeviction (ElastiCache: in the parameter group).",
    )


def _persistence(about: dict[str, Any]) -> Line:
    if about.get("aof_enabled") or about.get("connected_slaves"):
        return ok("Persistence", "on" if about.get("aof_enabled") else "a replica has a copy")
    return note(
        "Persistence",
        "off: a restart forgets wake-ups and counted sign-ins; sweeps find the work again within seconds",
        "Turn on appendonly, or run a replica with automatic failover (ElastiCache: Multi-AZ).",
    )
