"""Change requests as lists and pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from deployments.approvals.selectors import approvals
from deployments.approvals.selectors.approvals import Decidable
from deployments.changes.selectors import changes, descriptions, shown_evidence
from deployments.models import ChangeRequest, Deployment, EmergencyReview, GivenApproval
from deployments.registry.domain import metric_direction
from deployments.spec.domain import field_values
from deployments.states import ChangeState
from portal.accounts.models import User


@dataclass(frozen=True, slots=True)
class ChangeItem:
    change: ChangeRequest
    title: str
    detail: str
    consequence: str
    requester: str
    # What of the approvals is given and missing; empty when it is decided.
    approvals: str
    # Approved without the rules.
    is_emergency: bool
    # What it costs a month at the fewest replicas; None where it costs nothing or is not known.
    month_min: Decimal | None


@dataclass(frozen=True, slots=True)
class FieldLine:
    label: str
    before: str
    after: str
    # "good" or "bad" where the direction of a metric is known; else no colour says which is better.
    tone: str = ""

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class ApprovalLine:
    approval: GivenApproval
    user: str
    stands_for: str


def lines_of(change: ChangeRequest) -> list[FieldLine]:
    """Field by field what serves now and what is asked for; fields empty on both sides left out."""
    return lines_from(shown_evidence.diff_of(change))


def lines_from(diff: Iterable[Mapping[str, str]]) -> list[FieldLine]:
    return [
        FieldLine(
            field_values.describe_field(line["field"]),
            line["before"],
            line["after"],
            metric_direction.tone(line["field"], line["before"], line["after"]),
        )
        for line in diff
        if line["before"] or line["after"]
    ]


def item_of(change: ChangeRequest) -> ChangeItem:
    """Of a decided one as it was shown to whoever decided."""
    kept = shown_evidence.kept(change)
    month_min = descriptions.amount(change.cost.get("month_min"))
    if kept is not None:
        return ChangeItem(
            change=change,
            title=kept["title"],
            detail=kept["detail"],
            consequence=kept["consequence"],
            requester=kept["requester"],
            approvals="",
            is_emergency=kept["standing"]["is_emergency"],
            month_min=month_min,
        )
    standing = approvals.standing_of(change)
    return ChangeItem(
        change=change,
        title=descriptions.title_of(change),
        detail=descriptions.detail_of(change),
        consequence=descriptions.consequence_of(change),
        requester=change.requester.display_name,
        approvals=standing.words if change.state == ChangeState.SUBMITTED else "",
        is_emergency=standing.is_emergency,
        month_min=month_min,
    )


def items_of(found: Iterable[ChangeRequest]) -> list[ChangeItem]:
    return [item_of(change) for change in found]


def review_of(change: ChangeRequest) -> EmergencyReview | None:
    found: EmergencyReview | None = getattr(change, "emergency_review", None)
    return found


def open_change_of(user: User, deployment: Deployment) -> ChangeItem | None:
    rows = changes.list_visible_to(user).filter(
        deployment=deployment, state__in=changes.OPEN_STATES
    )
    found = rows.first()
    return item_of(found) if found else None


def approvals_of(change: Decidable, shown: Mapping[str, Any]) -> list[ApprovalLine]:
    """With the names that people had when the request was decided."""
    names = {one["id"]: one for one in shown["approvals"]}
    lines = []
    for one in change.approvals.all():
        kept = names.get(one.pk, {})
        stands_for = one.stands_for.display_name if one.stands_for else ""
        lines.append(
            ApprovalLine(
                approval=one,
                user=kept.get("user", one.user.display_name),
                stands_for=kept.get("stands_for", stands_for),
            )
        )
    return lines
