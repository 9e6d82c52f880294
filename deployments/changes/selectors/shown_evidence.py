"""All that whoever decides on a request is shown, as plain values that can be kept.

An open request is shown as it is now. A decided one is shown as it was then: versions are described
anew, people and clusters get other names, approvals expire; what was decided on does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from deployments.approvals.selectors import approvals
from deployments.changes.selectors import changes, descriptions, evidence, guard_lines
from deployments.models import Approval, ChangeRequest
from deployments.states import ChangeState
from portal.core import clock

Shown = dict[str, Any]

_OPEN: Final = (ChangeState.DRAFT, ChangeState.SUBMITTED)
# What is compared with today, in the words of the page.
_COMPARED: Final[Mapping[str, str]] = {
    "metadata": "the version metadata",
    "manifests": "the manifests",
    "guards": "the guards",
    "requester": "the name of the requester",
    "cluster": "the name of the cluster",
}


def of(change: ChangeRequest) -> Shown:
    """As it is now."""
    deployment, revision = change.deployment, change.revision
    checks, checked_at = _checks(change)
    return {
        "at": clock.now().isoformat(),
        "evidence_hash": change.evidence_hash,
        "title": descriptions.title_of(change),
        "detail": descriptions.detail_of(change),
        "consequence": descriptions.consequence_of(change),
        "requester": change.requester.display_name,
        "team": deployment.team.slug,
        "cluster": deployment.cluster.name,
        "environment": deployment.environment,
        "checks": checks,
        "checked_at": checked_at,
        "cost": change.cost,
        "diff": diff_of(change),
        "guards": [asdict(line) for line in guard_lines.of_change(change)],
        "manifests": evidence.yaml_of_change(change),
        "metadata": {} if revision is None else revision.version.metadata,
        "standing": _standing(change),
        "approvals": [_approval(one) for one in change.approvals.all()],
    }


def kept(change: ChangeRequest) -> Shown | None:
    """As it was decided on; None while it is open, and of what was decided before this was kept."""
    if change.state in _OPEN or not change.decided:
        return None
    found: Shown = change.decided
    return found


def differences(change: ChangeRequest, then: Shown) -> list[str]:
    """What would be shown otherwise today, in words."""
    now = of(change)
    return [words for name, words in _COMPARED.items() if now[name] != then[name]]


def diff_of(change: ChangeRequest) -> list[dict[str, str]]:
    return [asdict(line) for line in changes.diff_of(change)]


def _checks(change: ChangeRequest) -> tuple[list[dict[str, Any]], str]:
    """Of the last look at this very evidence, else those of the request; and when they were made."""
    look = change.last_look
    if look and look["evidence_hash"] == change.evidence_hash and look["checks"]:
        return look["checks"], look["at"]
    return change.checks, (change.submitted_at or change.created_at).isoformat()


def _standing(change: ChangeRequest) -> dict[str, Any]:
    """Approvals count for a week; how they stood when it was decided stays."""
    standing = approvals.standing_of(change)
    rows = [
        {
            "words": row.words,
            "missing": row.missing,
            "requirement": {"rule": row.requirement.rule, "why": row.requirement.why},
        }
        for row in standing.rows
    ]
    return {"is_emergency": standing.is_emergency, "missing": standing.missing, "rows": rows}


def _approval(one: Approval) -> dict[str, Any]:
    return {
        "id": one.pk,
        "user": one.user.display_name,
        "stands_for": one.stands_for.display_name if one.stands_for else "",
    }
