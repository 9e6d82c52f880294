"""Failed sign-ins are limited before the password is looked at: each look costs a third of a second.

Limits of failures, in windows of 15 minutes:
- of one name from one address, and of one address whatever the names: guessing and spraying;
- of one name from everywhere: guessing from many addresses.

Nobody can lock another out by failing in their name: a browser that has signed in to a name before
carries a signed cookie, and is counted by itself. The cookie opens nothing.
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
_MOST_NAMES: Final = 5
# Password checks at the same time in one process; more would take the cores from everybody else.
_MOST_CHECKS: Final = 2
_WAIT_SECONDS: Final = 5.0
_checks = threading.BoundedSemaphore(_MOST_CHECKS)


@dataclass(frozen=True, slots=True)
class Attempt:
    """`device` is the cookie as it came, perhaps empty or made up."""

    username: str
    address: str
    device: str = ""

    @property
    def name(self) -> str:
        return self.username.strip().lower()


def begin(attempt: Attempt) -> int:
    """Count an attempt before the password is looked at. 0, or the seconds to wait."""
    known = _device_id(attempt)
    if known:
        is_fine = rate_limits.count(OF_DEVICE, known, attempt.name)
        return 0 if is_fine else OF_DEVICE.seconds_left()
    # In this order: who is over the limit of an address adds nothing to that of a name.
    for limit, subject in _of_strangers(attempt):
        if not rate_limits.count(limit, *subject):
            return limit.seconds_left()
    return 0


def succeeded(attempt: Attempt) -> None:
    """Whoever knows the password begins at zero again; the address keeps its other failures."""
    known = _device_id(attempt)
    if known:
        rate_limits.forget(OF_DEVICE, known, attempt.name)
        return
    rate_limits.forget(OF_PAIR, attempt.name, attempt.address)
    rate_limits.take_back(OF_ADDRESS, attempt.address)
    rate_limits.take_back(OF_NAME, attempt.name)


@contextmanager
def room_to_check() -> Iterator[bool]:
    """False when so many passwords are being checked that this one has to come again."""
    has_room = _checks.acquire(timeout=_WAIT_SECONDS)
    try:
        yield has_room
    finally:
        if has_room:
            _checks.release()


def cookie_after(attempt: Attempt) -> str:
    """The value for a browser that has just signed in; it stays known for its last few names."""
    found = _read(attempt.device)
    device = found[0] if found else secrets.token_urlsafe(12)
    names = [_digest(attempt.name), *(found[1:] if found else [])]
    return signing.dumps([device, *list(dict.fromkeys(names))[:_MOST_NAMES]], salt=_SALT)


def _of_strangers(attempt: Attempt) -> tuple[tuple[Limit, tuple[str, ...]], ...]:
    return (
        (OF_ADDRESS, (attempt.address,)),
        (OF_PAIR, (attempt.name, attempt.address)),
        (OF_NAME, (attempt.name,)),
    )


def _device_id(attempt: Attempt) -> str:
    found = _read(attempt.device)
    return found[0] if found and _digest(attempt.name) in found[1:] else ""


def _read(cookie: str) -> list[str]:
    try:
        found = signing.loads(cookie, salt=_SALT, max_age=COOKIE_SECONDS) if cookie else []
    except signing.BadSignature:
        return []
    return [str(part) for part in found]


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:16]
