"""Requests to take a safeguard of a deployment away, and the approvals that they still need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from deployments.approvals.domain import rules
from deployments.approvals.domain.approver_roles import ApproverRole
from deployments.approvals.domain.requirement import Requirement
from deployments.approvals.domain.rules import Approver, ChangeFacts
from deployments.approvals.selectors import approvals
from deployments.models import Deployment, SafeguardRequest
from portal.core import clock

Safeguard = SafeguardRequest.Safeguard
# As long as an approval of a change waits for the others.
_VALID: Final = timedelta(days=7)
# Rules for kinds of changes name none of these.
_KIND: Final = "safeguard"


def open_request(deployment: Deployment, safeguard: Safeguard) -> SafeguardRequest | None:
    rows = SafeguardRequest.objects.filter(deployment=deployment, safeguard=safeguard)
    rows = rows.filter(created_at__gt=clock.now() - _VALID)
    return rows.select_related("requester", "deployment__team").first()


def describe_open(deployment: Deployment, safeguard: Safeguard) -> str:
    """Describe who requested the removal and what it waits for. Empty without a request."""
    row = open_request(deployment, safeguard)
    if row is None:
        return ""
    return f"{row.requester.display_name} requested it: {describe_missing(row)}"


def describe_missing(row: SafeguardRequest) -> str:
    """Name the approvals that are missing, for example "0 of 1 approval by a lead or platform admin"."""
    return "; ".join(
        item.description for item in progress(row, read_approvals(row)) if item.missing
    )


def read_approvals(row: SafeguardRequest) -> list[Approver]:
    return [_read(item) for item in row.approvals]


def progress(
    row: SafeguardRequest, approvers: Iterable[Approver]
) -> tuple[rules.ApprovalProgress, ...]:
    return rules.progress_of(list_requirements(row), approvers, requester_id=row.requester_id)


def list_requirements(row: SafeguardRequest) -> tuple[Requirement, ...]:
    """List what the environment and the rules demand of a change of the deployment now."""
    facts = ChangeFacts(
        team_id=row.deployment.team_id,
        environment=row.deployment.environment,
        kind=_KIND,
        instance_types=(),
        gpu_names=(),
        has_cost=False,
        month_amount=None,
    )
    return approvals.required_now(facts)


def _read(item: Mapping[str, Any]) -> Approver:
    return Approver(**{**item, "role": ApproverRole(item["role"])})
