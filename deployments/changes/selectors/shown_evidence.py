"""Everything that the page of a request shows, as plain values that can be stored.

An open request is shown as it is now. A decided one is shown as it was then: version metadata is
edited, people and clusters are renamed, approvals expire; what was decided on does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from deployments.approvals.selectors import approvals
from deployments.changes.domain.shown_evidence import (
    ShownApproval,
    ShownEvidence,
    ShownProgress,
    ShownRequirement,
    ShownStatus,
)
from deployments.changes.selectors.evidence import ReviewedChange
from deployments.changes.selectors.subjects import subject_of
from deployments.models import Approval, ChangeRequest
from deployments.preflight.domain.checks import LastRecheck
from deployments.states import ChangeState
from portal.core import clock

_OPEN: Final = (ChangeState.DRAFT, ChangeState.SUBMITTED)
# What is compared with today's state, and its label on the page.
_COMPARED: Final[Mapping[str, str]] = {
    "metadata": "the version metadata",
    "manifests": "the manifests",
    "guards": "the guards",
    "requester": "the name of the requester",
    "cluster": "the name of the cluster",
}


def collect_evidence(
    change: ChangeRequest, reviewed: ReviewedChange | None = None, *, is_approved: bool = False
) -> ShownEvidence:
    """Return the evidence as it is now. `reviewed` is what was just rendered for the decision, `is_approved` says
    that this decision lets the request run.
    """
    subject, target = subject_of(change), change.subject
    described = subject.describe(change)
    rendered = subject.render(change) if reviewed is None else reviewed.rendered
    checks, checked_at = _checks(change)
    return ShownEvidence(
        at=clock.now(),
        evidence_hash=change.evidence_hash,
        title=described.title,
        detail=described.detail,
        consequence=described.consequence,
        requester=change.requester.display_name,
        team=target.team.slug,
        cluster=target.cluster.name,
        environment=target.environment,
        checks=checks,
        checked_at=checked_at,
        cost=change.cost,
        diff=diff_of(change),
        guards=[asdict(line) for line in subject.guards(change)],
        manifests=rendered.to_yaml() if rendered else "",
        promotion=change.promotion,
        metadata=dict(subject.metadata(change)),
        approval_status=_approval_status(change, is_approved=is_approved),
        approvals=tuple(_approval(approval) for approval in change.approvals.all()),
    )


def read_decided(change: ChangeRequest) -> ShownEvidence | None:
    """Return the evidence at the decision. None while the request is open, or if it was not stored."""
    if change.state in _OPEN or not change.decided:
        return None
    return ShownEvidence.from_json(change.decided)


def differences(change: ChangeRequest, then: ShownEvidence) -> list[str]:
    """Return the labels of what the page would show differently today."""
    now = collect_evidence(change)
    return [label for name, label in _COMPARED.items() if getattr(now, name) != getattr(then, name)]


def diff_of(change: ChangeRequest) -> list[dict[str, str]]:
    return [asdict(line) for line in subject_of(change).diff(change)]


def _checks(change: ChangeRequest) -> tuple[list[dict[str, Any]], datetime]:
    """Return the checks of the last recheck of this very evidence, else those of the request; and their time."""
    last = LastRecheck.from_json(change.last_recheck)
    if last and last.evidence_hash == change.evidence_hash and last.checks:
        return [check.to_json() for check in last.checks], last.at
    return change.checks, change.submitted_at or change.created_at


def _approval_status(change: ChangeRequest, *, is_approved: bool) -> ShownStatus:
    """Return the status of the approvals at the decision, which stays although approvals expire after a week."""
    status = approvals.status_at_request(change) if is_approved else approvals.status_of(change)
    rows = tuple(
        ShownProgress(
            row.description,
            row.missing,
            ShownRequirement(row.requirement.rule, row.requirement.why),
        )
        for row in status.rows
    )
    return ShownStatus(status.is_emergency, status.missing, rows)


def _approval(approval: Approval) -> ShownApproval:
    stands_for = approval.stands_for.display_name if approval.stands_for else ""
    return ShownApproval(approval.pk, approval.user.display_name, stands_for)
