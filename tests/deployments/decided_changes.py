"""Approval rules, requests under them, and approvals by people."""

from __future__ import annotations

from deployments.models import ApprovalRule, ChangeRequest
from deployments.selectors import approvals
from deployments.services import changes, policies
from deployments.services.policies import RuleDraft
from portal.accounts.models import User
from tests.deployments.delivery.conftest import World


def rule(world: World, name: str = "two leads", **changed: object) -> ApprovalRule:
    values = {"needed": 2, **changed}
    return policies.make(actor=world.admin, draft=RuleDraft(name=name, **values))


def ask(world: World, by: User | None = None, **changed: object) -> ChangeRequest:
    return changes.request_deploy(actor=by or world.member, draft=world.draft(**changed))


def approve(who: User, change: ChangeRequest, comment: str = "") -> ChangeRequest:
    change.refresh_from_db()
    return changes.approve(
        actor=who, change_id=change.pk, evidence_hash=change.evidence_hash, comment=comment
    )


def words(change: ChangeRequest) -> str:
    return approvals.standing_of(ChangeRequest.objects.get(pk=change.pk)).words
