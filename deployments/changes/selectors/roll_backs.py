"""Preview a roll back: what it changes, and whether it needs an approval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deployments.approvals.selectors import approvals, earlier_approvals
from deployments.approvals.selectors.earlier_approvals import EarlierApproval
from deployments.changes.selectors import shown_evidence
from deployments.changes.selectors.subjects import subject_of
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.states import ChangeKind, ChangeState
from portal.accounts.models import User


@dataclass(frozen=True, slots=True)
class RollBackPreview:
    """The fields that differ from what serves now. `earlier` is None if the roll back needs an approval."""

    diff: Sequence[Mapping[str, str]]
    earlier: EarlierApproval | None


def preview(user: User, deployment: Deployment, revision: Revision) -> RollBackPreview:
    """Preview the roll back with price and GPUs of the request that the revision served by."""
    change = ChangeRequest(
        deployment=deployment,
        team=deployment.team,
        kind=ChangeKind.ROLL_BACK,
        requester=user,
        revision=revision,
        restored_number=revision.number,
    )
    done = ChangeRequest.objects.filter(revision=revision, state=ChangeState.DONE)
    last = done.order_by("-id").first()
    if last is not None:
        change.gpu_name, change.cost = last.gpu_name, last.cost
    required = approvals.required_now(subject_of(change).facts(change))
    return RollBackPreview(
        diff=shown_evidence.diff_of(change),
        earlier=earlier_approvals.find_for(change, required, actor=user),
    )
