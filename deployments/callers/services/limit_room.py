"""Refuse a limit for which the gateway has no room, before anything is sent there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from deployments.callers.services import issuing
from deployments.manifests.domain.access.limit_rules import MOST_RULES
from deployments.manifests.selectors import caller_access
from deployments.models import Deployment
from portal.core.errors import Invalid

_SHOWN: Final = 20


@contextmanager
def require_room(deployment: Deployment, issuer: str) -> Iterator[None]:
    """Check, around the writes of a change and inside its transaction, that the gateway has room for its limits.

    Raises Invalid if it has none, so that the change is rolled back. A change that needs no more room than before
    passes.
    """
    # Of two changes at once the second sees the first.
    Deployment.objects.select_for_update().get(pk=deployment.pk)
    before = caller_access.limit_rules_needed(deployment, issuer)
    used = caller_access.limits_in_use(deployment, issuer)
    yield
    if issuing.is_signed(deployment):
        # Its gateway enforces no limits of callers.
        return
    needed = caller_access.limit_rules_needed(deployment, issuer)
    if needed > max(MOST_RULES, before):
        raise Invalid(
            _describe(deployment, used),
            code="too_many_limits",
            fields={"requests_per_minute": "one that another caller has, or none"},
        )


def _describe(deployment: Deployment, used: list[int]) -> str:
    listed = ", ".join(str(limit) for limit in used[:_SHOWN])
    more = ", …" if len(used) > _SHOWN else ""
    return (
        f"The gateway has no room for one more limit at {deployment}: one address takes {MOST_RULES} rules, and above "
        f"{MOST_RULES} callers those with the same limit share one. Choose a limit that others have ({listed}{more} "
        "requests a minute), leave it empty, or revoke keys."
    )
