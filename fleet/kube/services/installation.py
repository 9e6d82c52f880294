"""The identity of this installation, and whether it may write to clusters."""

from __future__ import annotations

import secrets
import uuid
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final

from django.db import ProgrammingError, connection, transaction
from django.db.models import F

from fleet.kube.domain.errors import InstallationSuspended
from fleet.kube.domain.ownership import Fence
from fleet.models import Installation
from portal.core import clock
from portal.core.single_row import find_one

_KEY: Final = 1
_MOVED = (
    "This portal runs on a copy of its database and changes nothing on clusters. "
    "A platform admin decides by `manage.py adopt` which one goes on."
)
_OVERTAKEN = (
    "A newer copy of this portal's database wrote to {namespace} on {cluster}. This portal changes "
    "nothing on clusters until a platform admin decides by `manage.py adopt` which one goes on."
)


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of this installation. `suspended_reason` is empty while the portal may write."""

    identity: str
    fence: Fence
    suspended_reason: str
    created_at: datetime

    def require_active(self) -> None:
        """Raise InstallationSuspended unless the portal may write."""
        if self.suspended_reason:
            raise InstallationSuspended(self.suspended_reason)


def read() -> Identity:
    """Return the identity, which the first call makes."""
    row = find_one(Installation.objects.filter(pk=_KEY)) or _create()
    reason = row.suspended_reason
    if not reason and row.database != fingerprint():
        reason = _MOVED
    return Identity(str(row.identity), Fence(row.fence, row.fence_nonce), reason, row.created_at)


def raise_fence() -> Fence:
    """Record the next write before it is made."""
    with transaction.atomic():
        Installation.objects.filter(pk=_KEY).update(
            fence=F("fence") + 1, fence_nonce=secrets.token_hex(4)
        )
        number, nonce = Installation.objects.values_list("fence", "fence_nonce").get(pk=_KEY)
    return Fence(number, nonce)


def suspend(*, namespace: str, cluster: str) -> InstallationSuspended:
    """Stop all writes: a namespace has a write that this database does not know. Returns the error."""
    reason = _OVERTAKEN.format(namespace=namespace, cluster=cluster)
    Installation.objects.filter(pk=_KEY, suspended_reason="").update(suspended_reason=reason)
    return InstallationSuspended(reason)


def resume(*, above: int) -> Identity:
    """Let this database go on: its writes count from above what clusters carry, so that another copy stops."""
    read()
    fence = max(above, Installation.objects.values_list("fence", flat=True).get(pk=_KEY)) + 1
    Installation.objects.filter(pk=_KEY).update(
        suspended_reason="",
        database=fingerprint(),
        fence=fence,
        fence_nonce=secrets.token_hex(4),
    )
    return read()


def renew() -> Identity:
    """Make another installation of this database: what is on clusters stays the original's."""
    read()
    Installation.objects.filter(pk=_KEY).update(
        identity=uuid.uuid4(), suspended_reason="", database=fingerprint(), fence=0, fence_nonce=""
    )
    return read()


def fingerprint() -> str:
    """Return a text that differs for a copy of this database elsewhere."""
    settings = connection.settings_dict
    return _fingerprint(
        connection.vendor, str(settings["NAME"]), str(settings["HOST"]), str(settings["PORT"])
    )


@cache
def _fingerprint(vendor: str, name: str, _host: str, _port: str) -> str:
    if vendor != "postgresql":
        return f"{vendor}:{name if 'memory' in name else Path(name).resolve()}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT oid FROM pg_database WHERE datname = current_database()")
        oid = cursor.fetchone()[0]
    return f"{vendor}:{_system_identifier()}:{oid}"


def _system_identifier() -> str:
    """Return PostgreSQL's identifier. Empty if the role may not read it: fences of namespaces then reveal a copy."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT system_identifier FROM pg_control_system()")
            return str(cursor.fetchone()[0])
    except ProgrammingError:
        return ""


def _create() -> Installation:
    row, _ = Installation.objects.get_or_create(
        pk=_KEY,
        defaults={
            "identity": uuid.uuid4(),
            "database": fingerprint(),
            "created_at": clock.now(),
        },
    )
    return row
