"""Single-use links in messages to one person: bound to them, the step and the evidence."""

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
_NEEDS: Final = {ROLLOUT: Action.PROMOTE, CHANGE: Action.APPROVE}


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """What a message asks people to decide, with the evidence that it shows."""

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


def decision_of(data: Mapping[str, Any]) -> DecisionRequest | None:
    asked = data.get("decide")
    if not asked:
        return None
    return DecisionRequest(
        kind=asked["kind"],
        object_id=asked["id"],
        requester_id=asked["requester_id"],
        evidence_hash=asked["evidence_hash"],
        step_index=asked.get("step_index", 0),
    )


def make(*, delivery: Delivery, user: User, question: DecisionRequest) -> DecisionLink | None:
    """None for a person who may not decide on it."""
    team = delivery.notice.team
    need = _NEEDS[question.kind]
    if not policy.is_allowed(user, need, team, requester_id=question.requester_id):
        return None
    nonce = secrets.token_hex(16)
    at = clock.now()
    return DecisionLink.objects.create(
        delivery=delivery,
        user=user,
        kind=question.kind,
        object_id=question.object_id,
        step_index=question.step_index,
        evidence_hash=question.evidence_hash,
        nonce=nonce,
        digest=_digest(vault.token_of(nonce)),
        created_at=at,
        expires_at=at + LIFETIME,
    )


def path_of(link: DecisionLink) -> str:
    """The only place where the token comes to be; it goes into the message and nowhere else."""
    return f"/decide/{vault.token_of(link.nonce)}"


def known_digest(token: str) -> str:
    """What stands for the token once its link was opened. Raises NotFound for an invented one."""
    digest = _digest(token)
    if not DecisionLink.objects.filter(digest=digest).exists():
        raise NotFound(_ABSENT)
    return digest


def id_of(digest: str) -> int:
    return DecisionLink.objects.only("pk").get(digest=digest).pk


def find(*, actor: User, link_id: int, opened: Collection[str]) -> DecisionLink:
    """`opened`: digests of the tokens with which this session opened links.

    Also when it is used or expired, so that the page can say so. Raises NotFound and Forbidden."""
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
    """Empty while the link can be used."""
    if link.used_at is not None:
        return f"This link has been used: you chose to {link.used_for}."
    if link.expires_at <= clock.now():
        return "This link has expired."
    return ""


def use(link: DecisionLink, *, choice: str) -> None:
    """Inside the transaction of what it decides; of two clicks one wins, the other is a Conflict."""
    written = DecisionLink.objects.filter(
        pk=link.pk, used_at=None, expires_at__gt=clock.now()
    ).update(used_at=clock.now(), used_for=choice)
    if written == 0:
        link.refresh_from_db()
        raise Conflict(why_dead(link), code="link_used")


def give_back(link: DecisionLink) -> None:
    """What it was used for was refused, so it can be used again."""
    DecisionLink.objects.filter(pk=link.pk).update(used_at=None, used_for="")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
