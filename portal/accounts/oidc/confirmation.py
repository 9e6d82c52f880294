"""Whether the answer of a provider shows that a person has just signed in there again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from portal.accounts.models import Identity, User
from portal.accounts.oidc.errors import SignInRefused
from portal.accounts.oidc.providers import Provider
from portal.core import clock

# From the provider's form to the callback, and what the clocks differ by.
_FRESH: Final = timedelta(minutes=5)
_LEEWAY: Final = timedelta(minutes=1)


def read_sign_in_time(claims: Mapping[str, Any]) -> datetime | None:
    """Return when the person showed the provider who they are. None if it does not say, or names a future time."""
    seconds = claims.get("auth_time")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    now = clock.now()
    if not 0 < seconds <= (now + _LEEWAY).timestamp():
        return None
    return min(datetime.fromtimestamp(seconds, UTC), now)


def check(provider: Provider, claims: Mapping[str, Any], *, user: User) -> None:
    """Raises SignInRefused unless it is this person, and just now."""
    identity = Identity.objects.filter(issuer=provider.issuer, subject=claims["sub"]).first()
    if identity is None or identity.user_id != user.pk:
        raise SignInRefused(
            f"You signed in at {provider.label} as someone other than {user.username}. Confirm with your own "
            "account.",
            code="another_person",
        )
    at = read_sign_in_time(claims)
    if at is None or clock.now() - at > _FRESH:
        raise SignInRefused(
            f"{provider.label} did not ask you to sign in again, or did not say when it did. A platform admin "
            "can have it send the claim auth_time.",
            code="not_fresh",
        )
