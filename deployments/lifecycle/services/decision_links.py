"""Decisions by the single-use link of a message: the same services, bound to what it showed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from deployments.changes.selectors import changes as change_selectors
from deployments.changes.services import decisions
from deployments.models import ChangeRequest, Rollout
from deployments.rollouts.selectors import rollouts as rollout_selectors
from deployments.rollouts.services import actions
from deployments.states import ROLLOUT, ChangeState, RolloutPhase
from portal.accounts.models import User
from portal.core.errors import Conflict, DomainError, Invalid
from portal.notifications import links
from portal.notifications.models import DecisionLink

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    links.ROLLOUT: ("promote", "abort"),
    links.CHANGE: ("approve", "reject"),
}


@dataclass(frozen=True, slots=True)
class LinkedDecision:
    """The decision behind a link in its present state: either `rollout` or `change` is set.

    `why_dead` says why the link no longer works. `why_changed` says why what the message showed can no longer
    be agreed to; rejecting or aborting is still possible then.
    """

    link: DecisionLink
    rollout: Rollout | None
    change: ChangeRequest | None
    why_dead: str
    why_changed: str

    @property
    def path(self) -> str:
        return str(self.link.delivery.notice.path)


def read(*, actor: User, link_id: int, opened: Collection[str]) -> LinkedDecision:
    """Read the decision behind a link. Changes nothing. Raises NotFound, and Forbidden for the link of someone
    else.
    """
    link = links.find(actor=actor, link_id=link_id, opened=opened)
    if link.kind == links.ROLLOUT:
        rollout = rollout_selectors.get_visible(actor=actor, rollout_id=link.object_id)
        dead = links.why_dead(link) or _why_over(rollout)
        return LinkedDecision(link, rollout, None, dead, _why_changed(link, rollout))
    change = change_selectors.get_visible(actor=actor, change_id=link.object_id)
    dead = links.why_dead(link)
    if not dead and change.state != ChangeState.SUBMITTED:
        dead = f"The request is already {change.state}."
    is_same = change.evidence_hash == link.evidence_hash
    changed = "" if is_same else "The request changed after this message was sent."
    return LinkedDecision(link, None, change, dead, changed)


def decide(
    *, actor: User, link_id: int, opened: Collection[str], choice: str, comment: str = ""
) -> LinkedDecision:
    """Carry out the choice. The link is used up before anything is done and given back after a refusal, so that
    of two clicks one decides. A process that dies in between leaves a used link and nothing decided.
    """
    decision = read(actor=actor, link_id=link_id, opened=opened)
    if choice not in CHOICES[decision.link.kind]:
        raise Invalid("Choose one of the two buttons.", fields={"choice": "unknown"})
    if decision.why_dead:
        raise Conflict(decision.why_dead, code="link_dead")
    if decision.why_changed and choice in ("promote", "approve"):
        raise Conflict(decision.why_changed, code="evidence_changed")
    with transaction.atomic():
        links.use(decision.link, choice=choice)
    try:
        _CALLS[choice](actor, decision.link, comment)
    except DomainError:
        with transaction.atomic():
            links.give_back(decision.link)
        raise
    return decision


def _why_over(rollout: Rollout) -> str:
    if not ROLLOUT[RolloutPhase(rollout.phase)]:
        return f"The rollout is already {rollout.phase}."
    return ""


def _why_changed(link: DecisionLink, rollout: Rollout) -> str:
    if rollout.step_index != link.step_index:
        return "The rollout moved to another step after this message was sent."
    if rollout.evidence_hash != link.evidence_hash:
        return "A verdict changed after this message was sent."
    if rollout.phase != RolloutPhase.RUNNING:
        return f"The rollout is {rollout.phase}, so there is nothing to promote."
    return ""


def _promote(actor: User, link: DecisionLink, comment: str) -> None:
    actions.promote(actor=actor, rollout_id=link.object_id, evidence_hash=link.evidence_hash)


def _abort(actor: User, link: DecisionLink, comment: str) -> None:
    actions.abort(actor=actor, rollout_id=link.object_id, reason=comment)


def _approve(actor: User, link: DecisionLink, comment: str) -> None:
    decisions.approve(
        actor=actor, change_id=link.object_id, evidence_hash=link.evidence_hash, comment=comment
    )


def _reject(actor: User, link: DecisionLink, comment: str) -> None:
    decisions.reject(actor=actor, change_id=link.object_id, comment=comment)


_CALLS: Final[Mapping[str, Callable[[User, DecisionLink, str], None]]] = {
    "promote": _promote,
    "abort": _abort,
    "approve": _approve,
    "reject": _reject,
}
