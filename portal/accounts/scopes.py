"""The scopes that limit what an API token may do of what its owner may. `policy` checks them beside the owner's
role.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from portal.core.errors import Forbidden


class Scope(StrEnum):
    READ = "read"
    UPLOAD = "upload"
    REQUEST = "request"
    DECIDE = "decide"


DESCRIPTIONS: Final = {
    Scope.READ: "Read: everything that you see",
    Scope.UPLOAD: "Upload: models and versions",
    Scope.REQUEST: "Request: changes",
    Scope.DECIDE: "Decide: approve, promote, abort",
}
# What a service account can have: a person decides.
OF_SERVICE_ACCOUNTS: Final = (Scope.READ, Scope.UPLOAD, Scope.REQUEST)


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """The token of a request. `team_id` None: all teams of the owner."""

    token_id: int
    name: str
    scopes: frozenset[Scope]
    team_id: int | None
    expires_at: datetime
    requests_per_minute: int | None = None


def with_read(scopes: Iterable[str]) -> tuple[Scope, ...]:
    """Return the scopes with read, which every scope implies, in the order of `Scope`. Raises ValueError for an
    unknown one.
    """
    given = {Scope(scope) for scope in scopes} | {Scope.READ}
    return tuple(scope for scope in Scope if scope in given)


def require(grant: TokenGrant, needed: Scope | None, *, what: str) -> None:
    """Raises Forbidden for a token without the scope; None is what no token may do."""
    if needed is None:
        raise Forbidden(
            f"An API token cannot {what}. Sign in with a browser instead.", code="browser_only"
        )
    if needed not in grant.scopes:
        raise Forbidden(
            f"The token “{grant.name}” lacks the scope {needed}, which is needed to {what}. Create a token "
            "with that scope.",
            code="missing_scope",
        )
