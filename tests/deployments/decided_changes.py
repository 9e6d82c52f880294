"""Approval rules, requests under them, and approvals by people."""

from __future__ import annotations

from typing import Any

from deployments.approvals.selectors import approvals
from deployments.approvals.services import rules
from deployments.approvals.services.rules import RuleDraft
from deployments.changes.services import decisions, requests
from deployments.models import ApprovalRule, ChangeRequest
from portal.accounts.models import User
from tests.deployments.world import World


def rule(world: World, name: str = "two leads", **changed: Any) -> ApprovalRule:
    values: dict[str, Any] = {"needed": 2, **changed}
    return rules.make(actor=world.admin, draft=RuleDraft(name=name, **values))


def request_change(world: World, by: User | None = None, **changed: Any) -> ChangeRequest:
    return requests.request_deploy(actor=by or world.member, draft=world.draft(**changed))


def approve(who: User, change: ChangeRequest, comment: str = "") -> ChangeRequest:
    change.refresh_from_db()
    return decisions.approve(
        actor=who, change_id=change.pk, evidence_hash=change.evidence_hash, comment=comment
    )


def describe_approvals(change: ChangeRequest) -> str:
    return approvals.status_of(ChangeRequest.objects.get(pk=change.pk)).description
