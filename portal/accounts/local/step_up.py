"""Confirm that it is still the same person, before something that cannot be taken back.

Where the platform asks for it (SLIPWAY_STEP_UP_MINUTES), services call `require`. A person carries when they
last authenticated, as a request's session or token says; nothing else counts.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase

from portal.accounts.policy import Actor, System
from portal.core import clock
from portal.core.errors import Forbidden

_SESSION_KEY: Final = "authenticated_at"


class StepUpRequired(Forbidden):
    """Pages lead to the form that confirms, and back with what was typed."""

    code = "step_up_required"
    title = "Confirm that it is you"


def require(actor: Actor) -> None:
    """Raise StepUpRequired for a person who did not authenticate lately. `manage.py` and workers never do."""
    minutes = settings.SLIPWAY_STEP_UP_MINUTES
    if not minutes or isinstance(actor, System):
        return
    at = actor.authenticated_at
    if at is None or clock.now() - at > timedelta(minutes=minutes):
        raise StepUpRequired(
            f"This needs a sign-in of the last {minutes} {'minute' if minutes == 1 else 'minutes'}. Confirm in "
            "a browser that it is you; for a terminal, create a new token with the scope decide."
        )


def mark(session: SessionBase, at: datetime | None) -> None:
    """Mark the session as confirmed. `at` is when the person showed a password, a code, or themselves to a
    provider; None if unknown.
    """
    session[_SESSION_KEY] = at.isoformat() if at else ""


def time_of(session: SessionBase) -> datetime | None:
    text = session.get(_SESSION_KEY)
    return datetime.fromisoformat(text) if text else None
