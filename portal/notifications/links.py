"""Single-use decision links in messages, bound to one user, the step and the evidence."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, NotFound
from portal.notifications import vault
from portal.notifications.models import DecisionLink, Delivery

LIFETIME: Final = timedelta(hours=24)
ROLLOUT: Final = "rollout"
CHANGE: Final = "change"
_ABSENT: Final = (
    "The link is not valid, or it was opened elsewhere. Open the link in the message again."
)
_REQUIRED_ACTION: Final = {ROLLOUT: Action.PROMOTE, CHANGE: Action.APPROVE}


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A decision that a message requests, with the evidence that it shows."""

    kind: str
    object_id: int
    requester_id: int
    evidence_hash: str
    step_index: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "id": self.object_id,
            "requester_id": self.requester_id,
            "evidence_hash": self.evidence_hash,
            "step_index": self.step_index,
        }


def read_decision(data: Mapping[str, Any]) -> DecisionRequest | None:
    decision = data.get("decide")
    if not decision:
        return None
    return DecisionRequest(
        kind=decision["kind"],
        object_id=decision["id"],
        requester_id=decision["requester_id"],
        evidence_hash=decision["evidence_hash"],
        step_index=decision.get("step_index", 0),
    )


def make(*, delivery: Delivery, user: User, decision: DecisionRequest) -> DecisionLink | None:
    """Create a link; None for a user who may not decide."""
    team = delivery.notice.team
    if team is None:
        return None
    action = _REQUIRED_ACTION[decision.kind]
    if not policy.is_allowed(user, action, team, requester_id=decision.requester_id):
        return None
    nonce = secrets.token_hex(16)
    at = clock.now()
    return DecisionLink.objects.create(
        delivery=delivery,
        user=user,
        kind=decision.kind,
        object_id=decision.object_id,
        step_index=decision.step_index,
        evidence_hash=decision.evidence_hash,
        nonce=nonce,
        digest=_digest(vault.derive_token(nonce)),
        created_at=at,
        expires_at=at + LIFETIME,
    )


def path_of(link: DecisionLink) -> str:
    """Return the link's path with its token, for the message only."""
    return f"/decide/{vault.derive_token(link.nonce)}"


def known_digest(token: str) -> str:
    """Return the digest of a token, kept in the session after opening the link. Raises NotFound for an unknown
    token.
    """
    digest = _digest(token)
    if not DecisionLink.objects.filter(digest=digest).exists():
        raise NotFound(_ABSENT)
    return digest


def find_id(digest: str) -> int:
    return DecisionLink.objects.only("pk").get(digest=digest).pk


def find(*, actor: User, link_id: int, opened: Collection[str]) -> DecisionLink:
    """Find a link. `opened` are digests of the tokens with which this session opened links.

    Includes used and expired links, so that the page can say so. Raises NotFound and Forbidden.
    """
    rows = DecisionLink.objects.select_related("user", "delivery__notice__team")
    link = rows.filter(pk=link_id, digest__in=opened).first()
    if link is None:
        raise NotFound(_ABSENT)
    if link.user_id != actor.pk:
        raise Forbidden(
            "This link was sent to someone else and works only for them. "
            "Open the deployment's page instead.",
            code="link_of_another",
        )
    return link


def why_dead(link: DecisionLink) -> str:
    """Return why the link cannot be used. Empty while it can."""
    if link.used_at is not None:
        return f"This link has been used: you chose to {link.used_for}."
    if link.expires_at <= clock.now():
        return "This link has expired."
    return ""


def use(link: DecisionLink, *, choice: str) -> None:
    """Use the link, inside the transaction of the decision. A second click raises Conflict."""
    written = DecisionLink.objects.filter(
        pk=link.pk, used_at=None, expires_at__gt=clock.now()
    ).update(used_at=clock.now(), used_for=choice)
    if written == 0:
        link.refresh_from_db()
        raise Conflict(why_dead(link), code="link_used")


def give_back(link: DecisionLink) -> None:
    """Make the link usable again after the decision was refused."""
    DecisionLink.objects.filter(pk=link.pk).update(used_at=None, used_for="")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
