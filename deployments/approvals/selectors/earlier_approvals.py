"""Approvals of a revision that count again when a lead rolls back to it.

The revision that served before the present one was approved for this environment, as it is. A lead may go back to it
without a new approval as long as those approvals satisfy the rules that match the roll back now. All else needs
approvals of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.access.domain import catalogue
from deployments.approvals.domain import rules
from deployments.approvals.domain.approver_roles import ApproverRole
from deployments.approvals.domain.requirement import Requirement
from deployments.approvals.domain.rules import ApprovalProgress, Approver
from deployments.models import Approval, ChangeRequest, Deployment, Revision, Rollout
from deployments.states import ChangeKind, ChangeState, RolloutPhase
from portal.accounts import policy
from portal.accounts.policy import Action, Actor

# Requests of a revision as it is; other replicas and starts are not.
_OF_CONTENT: Final = (ChangeKind.DEPLOY, ChangeKind.CANARY, ChangeKind.ROLL_BACK)
# Empty for a request that a page prepares.
_NOT_BEGUN: Final = ("", ChangeState.SUBMITTED, ChangeState.APPROVED)


@dataclass(frozen=True, slots=True)
class EarlierApproval:
    """The request by which a revision was approved, and how far its approvals meet the rules of now."""

    change: ChangeRequest
    approvals: tuple[Approval, ...]
    rows: tuple[ApprovalProgress, ...]

    @property
    def description(self) -> str:
        names = ", ".join(approval.user.display_name for approval in self.approvals)
        number = self.change.revision.number if self.change.revision else 0
        return f"r{number} was approved by {names} in request {self.change.pk}"


def previously_serving(deployment: Deployment) -> Revision | None:
    """Return the revision that the present one replaced. None without one, and after a roll back: what was left
    behind is no place to go back to.
    """
    rollouts = Rollout.objects.filter(deployment=deployment, phase=RolloutPhase.COMPLETED)
    last = rollouts.select_related("change", "stable_revision").order_by("-id").first()
    if last is None or last.candidate_revision_id != deployment.stable_revision_id:
        return None
    return None if last.change.kind == ChangeKind.ROLL_BACK else last.stable_revision


def find_for(
    change: ChangeRequest, required: tuple[Requirement, ...], *, actor: Actor
) -> EarlierApproval | None:
    """Return the approvals that let the actor carry out the roll back. None if it needs others."""
    deployment, revision = change.deployment, change.revision
    if change.kind != ChangeKind.ROLL_BACK or deployment is None or revision is None:
        return None
    if change.state not in _NOT_BEGUN:
        # Its own rollout is the last one now.
        return None
    previous = previously_serving(deployment)
    if previous is None or previous.pk != revision.pk:
        return None
    if not policy.is_allowed(actor, Action.PROMOTE, deployment) or _is_opening(
        deployment, revision
    ):
        return None
    return _approved_before(change, required)


def _is_opening(deployment: Deployment, revision: Revision) -> bool:
    """Whether callers would need no key any more. Somebody else has to agree to that now."""
    stable = deployment.stable_revision
    now = catalogue.read_stored(stable.spec) if stable else catalogue.UNCHECKED
    then = catalogue.read_stored(revision.spec)
    return then.opens_to_everyone and not now.opens_to_everyone


def _approved_before(
    change: ChangeRequest, required: tuple[Requirement, ...]
) -> EarlierApproval | None:
    done = ChangeRequest.objects.filter(
        deployment=change.deployment_id, revision=change.revision_id, kind__in=_OF_CONTENT
    )
    if change.pk is not None:
        done = done.filter(pk__lt=change.pk)
    rows = done.filter(state=ChangeState.DONE).select_related("revision").order_by("id")
    for earlier in rows:
        given = tuple(
            earlier.approvals.filter(is_approved=True, is_emergency=False, void_reason="")
            .select_related("user")
            .order_by("id")
        )
        progress = rules.progress_of(
            required, map(approver_of, given), requester_id=earlier.requester_id
        )
        if rules.is_satisfied(progress):
            return EarlierApproval(earlier, given, progress)
    return None


def approver_of(approval: Approval) -> Approver:
    return Approver(
        person_id=approval.user_id,
        role=ApproverRole(approval.as_role),
        stands_for_id=approval.stands_for_id,
    )
