"""Check the password of somebody who is signed in, with the limits of sign-in."""

from __future__ import annotations

from http import HTTPStatus

from portal.accounts import sign_in_events, sign_ins
from portal.accounts.models import User
from portal.accounts.sign_ins import Attempt
from portal.core.errors import DomainError, Invalid


class TooManyAttempts(DomainError):
    code = "too_many_attempts"
    status = HTTPStatus.TOO_MANY_REQUESTS
    title = "Too many attempts"


def require(user: User, password: str, *, attempt: Attempt, field: str) -> None:
    """Raises Invalid for a wrong password, and TooManyAttempts before any check."""
    if seconds := sign_ins.begin(attempt):
        minutes = -(-seconds // 60)
        raise TooManyAttempts(
            f"Too many wrong passwords. Try again in {minutes} {'minute' if minutes == 1 else 'minutes'}."
        )
    with sign_ins.password_check_slot() as has_slot:
        if not has_slot:
            raise TooManyAttempts("Too many people are signing in. Try again in a moment.")
        is_right = user.check_password(password)
    if not is_right:
        sign_in_events.record_refusal(
            user.username, reason=sign_in_events.Reason.PASSWORD, address=attempt.address
        )
        raise Invalid("This is not your password.", fields={field: "not your password"})
    sign_ins.record_success(attempt)
