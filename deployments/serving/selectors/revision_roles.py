"""Tells the role of each revision of a deployment: only those that ran can be rolled back to."""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from typing import Final

from deployments.models import ChangeRequest, Deployment, Revision
from deployments.states import ChangeState


class RevisionRole(StrEnum):
    """The values are those of the REST API."""

    STABLE = "stable"
    CANDIDATE = "candidate"
    # It ran, and may run again.
    PAST = "past"
    STARTING = "starting"
    DRAFT = "draft"
    REQUESTED = "requested"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


_BY_CHANGE: Final = {
    ChangeState.DRAFT: RevisionRole.DRAFT,
    ChangeState.SUBMITTED: RevisionRole.REQUESTED,
    ChangeState.APPROVED: RevisionRole.APPROVED,
    ChangeState.APPLYING: RevisionRole.STARTING,
    ChangeState.REJECTED: RevisionRole.REJECTED,
    ChangeState.WITHDRAWN: RevisionRole.WITHDRAWN,
    ChangeState.EXPIRED: RevisionRole.EXPIRED,
}
_RAN: Final = (ChangeState.DONE, ChangeState.FAILED)


def roles_of(deployment: Deployment) -> dict[int, RevisionRole]:
    """Return the role of each revision by its primary key, in two queries."""
    states: dict[int, list[str]] = defaultdict(list)
    changes = ChangeRequest.objects.filter(deployment=deployment, revision__isnull=False)
    for revision_id, state in changes.order_by("id").values_list("revision_id", "state"):
        states[revision_id].append(state)
    pks = deployment.revisions.values_list("pk", flat=True)
    return {pk: _role_of(deployment, pk, states[pk]) for pk in pks}


def list_restorable(deployment: Deployment) -> list[Revision]:
    """Return the revisions that a roll back may go to, newest first."""
    roles = roles_of(deployment)
    rows = deployment.revisions.filter(baseline_of=None).select_related("version__model__team")
    return [row for row in rows if roles[row.pk] == RevisionRole.PAST]


def _role_of(deployment: Deployment, pk: int, states: list[str]) -> RevisionRole:
    if pk == deployment.stable_revision_id:
        return RevisionRole.STABLE
    if pk == deployment.candidate_revision_id:
        return RevisionRole.CANDIDATE
    if not states or any(state in _RAN for state in states):
        return RevisionRole.PAST
    return _BY_CHANGE[ChangeState(states[-1])]
