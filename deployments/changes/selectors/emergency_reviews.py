"""Reviews of emergency overrides."""

from __future__ import annotations

from typing import Final

from django.db.models import Prefetch, QuerySet

from deployments.models import ChangeRequest, EmergencyReview, Revision
from portal.accounts import four_eyes, policy
from portal.accounts.approvers import ApproverRights
from portal.accounts.models import Role, Team, User
from portal.accounts.policy import Action, Actor
from portal.core import clock
from portal.core.errors import Forbidden, NotFound

_OF_CHANGE: Final = (
    "team",
    "requester",
    *("deployment__team", "deployment__cluster", "pipeline__team", "pipeline__cluster"),
)
_FOUR_EYES = "You {} this change, so another lead or admin must review it (four eyes)."


def list_visible_to(actor: Actor, *, is_open: bool | None = None) -> QuerySet[EmergencyReview]:
    """List reviews, the oldest first."""
    rows = _with_related(_visible_to(actor))
    return rows if is_open is None else rows.filter(closed_at__isnull=is_open)


def waiting_for(actor: User, *, most: int | None = None) -> list[EmergencyReview]:
    """Return open reviews that this person may close, the oldest first: all, or the first of them."""
    ids = _ids_waiting_for(actor, ApproverRights(actor))
    return list(list_visible_to(actor).filter(pk__in=ids)[:most]) if ids else []


def count_waiting_for(actor: User, rights: ApproverRights | None = None) -> int:
    """Count the reviews that this person may close."""
    return len(_ids_waiting_for(actor, rights or ApproverRights(actor)))


def _ids_waiting_for(actor: User, rights: ApproverRights) -> list[int]:
    """Return the ids of reviews that this person may close. Every page counts them, so no evidence is read."""
    is_open = _visible_to(actor).filter(closed_at=None).order_by()
    facts = is_open.values_list("pk", "opened_by", "change__team", "change__requester")
    return [
        pk
        for pk, opened_by, team, requester in facts
        if (rights.is_admin or rights.role_in(team) == Role.LEAD)
        and rights.one_person.isdisjoint({opened_by, requester})
    ]


def why_blocked(team: Team) -> str:
    """Return why the team may use no emergency override now. Empty if no review is overdue."""
    rows = EmergencyReview.objects.filter(change__team=team, closed_at=None)
    late = _with_related(rows.filter(due_at__lte=clock.now())).first()
    if late is None:
        return ""
    return (
        f"The emergency override of the {late.change} (request {late.change_id}) is overdue for "
        "review. Review it first: overrides are blocked until then."
    )


def get_visible(*, actor: Actor, review_id: int) -> EmergencyReview:
    review = list_visible_to(actor).filter(pk=review_id).first()
    if review is None:
        raise NotFound(f"There is no review {review_id}, or you are not in its team.")
    return review


def may_close(actor: User, review: EmergencyReview) -> tuple[bool, str]:
    """Return whether the actor may close the review, and the reason if not."""
    if review.closed_at is not None:
        return False, "This review is closed."
    try:
        policy.require(actor, Action.EMERGENCY_OVERRIDE, review)
    except (Forbidden, NotFound) as refusal:
        return False, refusal.message
    if actor.pk == review.opened_by_id:
        return False, _FOUR_EYES.format("approved")
    if actor.pk == review.change.requester_id:
        return False, _FOUR_EYES.format("requested")
    one_person = four_eyes.one_person_with(actor.pk)
    if not one_person.isdisjoint({review.opened_by_id, review.change.requester_id}):
        why = four_eyes.explain("requester or approver")
        return False, f"{why} So another lead or admin must review it (four eyes)."
    return True, ""


def _visible_to(actor: Actor) -> QuerySet[EmergencyReview]:
    return EmergencyReview.objects.filter(change__team__in=policy.visible_teams(actor))


def _with_related(rows: QuerySet[EmergencyReview]) -> QuerySet[EmergencyReview]:
    """Load the related rows. The change comes by a query of its own: PostgreSQL takes long to plan one with all
    these tables.
    """
    changes = ChangeRequest.objects.select_related(*_OF_CHANGE)
    versions = Revision.objects.select_related("version__model__team").order_by()
    return rows.select_related("opened_by", "closed_by").prefetch_related(
        Prefetch("change", queryset=changes.prefetch_related(Prefetch("revision", versions)))
    )
