"""Challenges of passkeys between a page and its answer. Each counts once, and for five minutes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest

from portal.accounts.local import passkeys
from portal.accounts.local.passkeys import Challenge, Site
from portal.accounts.models import User
from portal.core import clock

_KEY: Final = "passkey_challenge"
_LIVES: Final = timedelta(minutes=5)


def find_site(request: HttpRequest) -> Site:
    """Return the site of the installation's public URL, or else of the URL in the browser's request."""
    public: str = settings.SLIPWAY_PUBLIC_URL
    return Site((public or request.build_absolute_uri("/")).rstrip("/"))


def ask_for_proof(request: HttpRequest, user: User) -> Mapping[str, Any] | None:
    """Return options for the browser. None without a passkey."""
    return keep(request, user, passkeys.begin_proof(user, find_site(request)))


def keep(request: HttpRequest, user: User, challenge: Challenge | None) -> Mapping[str, Any] | None:
    if challenge is None:
        return None
    at = clock.now().isoformat()
    request.session[_KEY] = {"user": user.pk, "at": at, "state": dict(challenge.state)}
    return challenge.options


def take(request: HttpRequest, user: User) -> Mapping[str, Any] | None:
    """Take the open challenge of this person, which is deleted then."""
    kept = request.session.pop(_KEY, None)
    if kept is None or kept["user"] != user.pk:
        return None
    if clock.now() - datetime.fromisoformat(kept["at"]) > _LIVES:
        return None
    state: Mapping[str, Any] = kept["state"]
    return state
