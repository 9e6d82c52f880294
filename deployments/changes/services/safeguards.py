"""Taking a safeguard of a deployment away needs the approvals that a change in its environment needs.

The first person requests it, and others approve by requesting the same. Putting it back needs none.
"""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from deployments import audit_actions
from deployments.approvals.domain import rules
from deployments.approvals.domain.approver_roles import ApproverRole
from deployments.approvals.domain.rules import Approver
from deployments.approvals.selectors import approvals
from deployments.changes.selectors import safeguards
from deployments.models import ChangeRequest, Deployment, SafeguardRequest
from deployments.serving.services import timeline
from portal.accounts import policy
from portal.accounts.approvers import ApproverRights
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.errors import Conflict, Forbidden
from portal.notifications import events, services

Safeguard = SafeguardRequest.Safeguard


def withdraw(deployment: Deployment, safeguard: Safeguard) -> None:
    """Delete the request to remove a safeguard. Call inside the transaction that puts the safeguard back."""
    SafeguardRequest.objects.filter(deployment=deployment, safeguard=safeguard).delete()


def may_remove(actor: User, deployment: Deployment, safeguard: Safeguard) -> bool:
    """Request or approve the removal of a safeguard; True with the last approval. Call inside a transaction.

    Raises Forbidden for somebody whose approval does not count, Conflict for the requester's second request.
    """
    Deployment.objects.select_for_update(no_key=True, of=("self",)).order_by().get(pk=deployment.pk)
    row = safeguards.open_request(deployment, safeguard)
    if row is None:
        withdraw(deployment, safeguard)
        _request(actor, deployment, safeguard)
        return False
    return _approve(actor, row)


def _request(actor: User, deployment: Deployment, safeguard: Safeguard) -> None:
    row = SafeguardRequest.objects.create(
        deployment=deployment, safeguard=safeguard, requester=actor, created_at=clock.now()
    )
    _record(actor, row, audit_actions.SAFEGUARD_REQUESTED, f"requested to {safeguard.label}")
    services.notify(
        team=deployment.team,
        event=events.APPROVAL_REQUESTED.code,
        subject=f"{actor.display_name} wants to {safeguard.label}: {deployment}",
        message="It needs the same approval as a change. Approve it with the same button on the deployment's page.",
        path=reverse("deployment", args=(deployment.team.slug, deployment.name)),
        data={"safeguard": safeguard.value},
    )


def _approve(actor: User, row: SafeguardRequest) -> bool:
    missing = safeguards.describe_missing(row)
    if actor.pk == row.requester_id:
        raise Conflict(f"You requested this. Waiting for others: {missing}.", code="waits")
    approver = _approver(actor, row)
    step_up.require(actor)
    given = safeguards.read_approvals(row)
    is_counting = rules.would_help(
        safeguards.progress(row, given),
        given,
        approver,
        requester_id=row.requester_id,
        one_person=ApproverRights(actor).one_person,
    )
    if not is_counting:
        raise Forbidden(f"Your approval does not count here: {missing}.", code="role_required")
    row.approvals = [*row.approvals, _to_json(approver)]
    message = f"approved to {Safeguard(row.safeguard).label}"
    _record(actor, row, audit_actions.SAFEGUARD_APPROVED, message)
    if rules.is_satisfied(safeguards.progress(row, [*given, approver])):
        row.delete()
        return True
    row.save(update_fields=["approvals"])
    return False


def _approver(actor: User, row: SafeguardRequest) -> Approver:
    """Return the role in which the actor approves, as for a change of the deployment by the same requester."""
    team = row.deployment.team
    policy.require_entitled(actor, Action.APPROVE)
    required = [item.to_json() for item in safeguards.list_requirements(row)]
    change = ChangeRequest(
        team=team, deployment=row.deployment, requester=row.requester, required=required
    )
    approver = approvals.ApproverContext(actor).approver_for(change, ())
    if approver is None or approver.role != ApproverRole.NAMED:
        policy.require(actor, Action.APPROVE, team, requester_id=row.requester_id)
    policy.require_another(actor, Action.APPROVE, team, row.requester_id)
    if approver is None:
        raise Forbidden("No approval rule lets you approve this.", code="role_required")
    return approver


def _to_json(approver: Approver) -> dict[str, Any]:
    return {
        "person_id": approver.person_id,
        "role": approver.role.value,
        "stands_for_id": approver.stands_for_id,
    }


def _record(actor: User, row: SafeguardRequest, action: AuditAction, message: str) -> None:
    deployment = row.deployment
    timeline.note(deployment=deployment, kind="safeguard", message=message, actor=actor)
    trail.record(
        actor=actor,
        action=action,
        obj=deployment,
        label=str(deployment),
        team_slug=deployment.team.slug,
        after={"safeguard": row.safeguard, "approvals": len(row.approvals)},
    )
