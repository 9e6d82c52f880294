"""Sign-ins as audit events. What was typed as a name that nobody has is not kept: it may be a password."""

from __future__ import annotations

import enum
import logging
from typing import Final

from django.db import transaction

from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.audit.actions import AuditAction, register

logger = logging.getLogger(__name__)

SIGNED_IN: Final = register("session.began", "signed in as")
REFUSED: Final = register("session.refused", "refused a sign-in or confirmation of")


class Reason(enum.StrEnum):
    PASSWORD = "wrong password"  # noqa: S105  no password
    CODE = "wrong code"
    PASSKEY = "passkey not accepted"
    DEACTIVATED = "deactivated"


def record_success(user: User, *, method: str, address: str) -> None:
    _record(user, user, SIGNED_IN, {"method": method, "address": address})


def record_refusal(username: str, *, reason: Reason, address: str) -> None:
    """Names are compared as sign-in compares them."""
    user = User.objects.filter(username=username).first()
    if user is None:
        logger.warning("A sign-in from %s was refused: nobody has that name", address)
        return
    reason = reason if user.is_active else Reason.DEACTIVATED
    _record(SYSTEM, user, REFUSED, {"reason": reason.value, "address": address})


def _record(actor: object, user: User, action: AuditAction, said: dict[str, str]) -> None:
    with transaction.atomic():
        trail.record(actor=actor, action=action, obj=user, label=user.username, after=said)
