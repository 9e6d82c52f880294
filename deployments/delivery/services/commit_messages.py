"""Commit messages: the change request, its requester and its approvers."""

from __future__ import annotations

from django.conf import settings

from deployments.models import Approval, ChangeRequest, Deployment, Pipeline
from portal.accounts.models import User


def message_of(subject: Deployment | Pipeline, step: str) -> str:
    change = _change_of(subject)
    noun = "Pipeline" if isinstance(subject, Pipeline) else "Deployment"
    target = f"{noun}: {subject} on {subject.cluster.name}"
    if change is None:
        return f"{subject}: {step}\n\n{target}\n"
    lines = [
        target,
        f"Change-Request: {change.pk} ({change.kind})",
        f"Requested-by: {_name(change.requester)}",
        *(f"Approved-by: {_name(user)}" for user in _approvers(change)),
    ]
    if settings.SLIPWAY_PUBLIC_URL:
        lines.append(f"See: {settings.SLIPWAY_PUBLIC_URL}/approvals/{change.pk}")
    return f"{subject}: {step} (change request {change.pk})\n\n" + "\n".join(lines) + "\n"


def _change_of(subject: Deployment | Pipeline) -> ChangeRequest | None:
    """Return the latest approved request, from which the desired state comes."""
    rows = subject.changes.select_related("requester")
    return rows.filter(state__in=["applying", "done", "failed"]).order_by("-id").first()


def _approvers(change: ChangeRequest) -> list[User]:
    rows = Approval.objects.select_related("user").filter(
        change=change, is_approved=True, void_reason=""
    )
    return [row.user for row in rows.order_by("at")]


def _name(user: User) -> str:
    """Return the display name on one line: a line break in it could forge another approver."""
    return " ".join(user.display_name.split())
