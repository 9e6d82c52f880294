"""Change requests as lists and pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.urls import reverse

from deployments.approvals.selectors import approvals
from deployments.changes.domain.shown_evidence import ShownEvidence
from deployments.changes.selectors import changes, shown_evidence
from deployments.changes.selectors.subjects import subject_of
from deployments.models import Approval, ChangeRequest, Deployment, EmergencyReview
from deployments.preflight.domain.checks import Cost, CostHeadline
from deployments.states import ChangeState
from portal.accounts.models import User


@dataclass(frozen=True, slots=True)
class ChangeItem:
    change: ChangeRequest
    title: str
    detail: str
    consequence: str
    requester: str
    # Approvals given and missing; empty when it is decided.
    approvals: str
    # Approved with an emergency override.
    is_emergency: bool
    headline: CostHeadline

    # What tables of requests show, of whatever kind they are (changes/_request_table.html).
    @property
    def state(self) -> str:
        return self.change.state

    @property
    def path(self) -> str:
        return reverse("change", args=(self.change.pk,))

    @property
    def anchor(self) -> str:
        return f"change-{self.change.pk}"

    @property
    def requested_at(self) -> datetime:
        return self.change.created_at

    @property
    def cost(self) -> Decimal | None:
        return self.headline.amount

    @property
    def cost_unit(self) -> str:
        return self.headline.unit


@dataclass(frozen=True, slots=True)
class ApprovalLine:
    approval: Approval
    user: str
    stands_for: str


def item_of(change: ChangeRequest) -> ChangeItem:
    """Return a request as lists show it; a decided one as it was shown at the decision."""
    kept = shown_evidence.read_decided(change)
    headline = Cost.from_json(change.cost if kept is None else kept.cost).headline
    if kept is not None:
        return ChangeItem(
            change=change,
            title=kept.title,
            detail=kept.detail,
            consequence=kept.consequence,
            requester=kept.requester,
            approvals="",
            is_emergency=kept.approval_status.is_emergency,
            headline=headline,
        )
    status, described = approvals.status_of(change), subject_of(change).describe(change)
    return ChangeItem(
        change=change,
        title=described.title,
        detail=described.detail,
        consequence=described.consequence,
        requester=change.requester.display_name,
        approvals=status.description if change.state == ChangeState.SUBMITTED else "",
        is_emergency=status.is_emergency,
        headline=headline,
    )


def items_of(rows: Iterable[ChangeRequest]) -> list[ChangeItem]:
    return [item_of(change) for change in rows]


def review_of(change: ChangeRequest) -> EmergencyReview | None:
    review: EmergencyReview | None = getattr(change, "emergency_review", None)
    return review


def open_change_of(user: User, deployment: Deployment) -> ChangeItem | None:
    change = changes.open_change_of(user, deployment)
    return item_of(change) if change else None


def approvals_of(change: ChangeRequest, shown: ShownEvidence) -> list[ApprovalLine]:
    """Return approvals with the names that people had at the decision."""
    names = {kept.id: kept for kept in shown.approvals}
    lines = []
    for approval in change.approvals.all():
        kept = names.get(approval.pk)
        stands_for = approval.stands_for.display_name if approval.stands_for else ""
        lines.append(
            ApprovalLine(
                approval=approval,
                user=kept.user if kept else approval.user.display_name,
                stands_for=kept.stands_for if kept else stands_for,
            )
        )
    return lines
