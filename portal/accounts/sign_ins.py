"""Rate limits of failed sign-ins, counted before the password check, which is costly by design.

Failures are limited in windows of 15 minutes:
- of one name from one address, and of one address for all names: guessing and spraying;
- of one name from all addresses: distributed guessing.

Nobody can lock out another user: a browser that signed in with a name before carries a signed cookie
and is counted separately. The cookie grants no access.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from django.core import signing

from portal.core import rate_limits
from portal.core.rate_limits import Limit

WINDOW_SECONDS: Final = 15 * 60
OF_PAIR: Final = Limit("sign-in of a name from an address", 10, WINDOW_SECONDS)
OF_ADDRESS: Final = Limit("sign-in from an address", 30, WINDOW_SECONDS)
OF_NAME: Final = Limit("sign-in of a name", 60, WINDOW_SECONDS)
OF_DEVICE: Final = Limit("sign-in of a known browser", 10, WINDOW_SECONDS)

COOKIE: Final = "slipway_device"
COOKIE_SECONDS: Final = 180 * 24 * 3600
_SALT: Final = "portal.accounts.sign_ins.device"
_MAX_NAMES: Final = 5
# Concurrent password checks per process, 100 MiB each; more would starve other requests.
_MAX_CHECKS: Final = 2
_WAIT_SECONDS: Final = 5.0
_checks = threading.BoundedSemaphore(_MAX_CHECKS)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to sign in. `device` is the cookie as received, possibly empty or forged."""

    username: str
    address: str
    device: str = ""

    @property
    def name(self) -> str:
        return self.username.strip().lower()


def begin(attempt: Attempt) -> int:
    """Count an attempt before the password check; return 0 or the seconds to wait."""
    known = _device_id(attempt)
    if known:
        is_fine = rate_limits.count(OF_DEVICE, known, attempt.name)
        return 0 if is_fine else OF_DEVICE.seconds_left()
    # In this order, so that an address over its limit does not count towards a name's limit.
    for limit, subject in _limits_without_cookie(attempt):
        if not rate_limits.count(limit, *subject):
            return limit.seconds_left()
    return 0


def record_success(attempt: Attempt) -> None:
    """Reset the counts of the name; the address keeps its other failures."""
    known = _device_id(attempt)
    if known:
        rate_limits.reset(OF_DEVICE, known, attempt.name)
        return
    rate_limits.reset(OF_PAIR, attempt.name, attempt.address)
    rate_limits.undo(OF_ADDRESS, attempt.address)
    rate_limits.undo(OF_NAME, attempt.name)


@contextmanager
def password_check_slot() -> Iterator[bool]:
    """Yield False when too many passwords are being checked and the client must retry."""
    has_slot = _checks.acquire(timeout=_WAIT_SECONDS)
    try:
        yield has_slot
    finally:
        if has_slot:
            _checks.release()


def cookie_after(attempt: Attempt) -> str:
    """Return the cookie for a browser that has just signed in. It remembers its last few names."""
    parts = _read(attempt.device)
    device = parts[0] if parts else secrets.token_urlsafe(12)
    names = [_digest(attempt.name), *(parts[1:] if parts else [])]
    return signing.dumps([device, *list(dict.fromkeys(names))[:_MAX_NAMES]], salt=_SALT)


def _limits_without_cookie(attempt: Attempt) -> tuple[tuple[Limit, tuple[str, ...]], ...]:
    return (
        (OF_ADDRESS, (attempt.address,)),
        (OF_PAIR, (attempt.name, attempt.address)),
        (OF_NAME, (attempt.name,)),
    )


def _device_id(attempt: Attempt) -> str:
    parts = _read(attempt.device)
    return parts[0] if parts and _digest(attempt.name) in parts[1:] else ""


def _read(cookie: str) -> list[str]:
    try:
        parts = signing.loads(cookie, salt=_SALT, max_age=COOKIE_SECONDS) if cookie else []
    except signing.BadSignature:
        return []
    return [str(part) for part in parts]


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:16]
