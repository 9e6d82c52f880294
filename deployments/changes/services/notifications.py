"""Whom a change request is told to. Inside the transaction of what it tells of."""

from __future__ import annotations

from django.urls import reverse

from deployments.approvals.selectors import approvals
from deployments.models import ChangeRequest
from deployments.plans.domain import descriptions, rollout_plan
from portal.notifications import events, links, services


def approval_wanted(change: ChangeRequest) -> None:
    question = links.DecisionRequest(
        kind=links.CHANGE,
        object_id=change.pk,
        requester_id=change.requester_id,
        evidence_hash=change.evidence_hash,
    )
    standing = approvals.standing_of(change)
    words = f"{change.requester.display_name} sent a request. {_sentence(standing.words)}"
    services.notify(
        team=change.team,
        event=events.APPROVAL_REQUESTED.code,
        subject=title_of(change),
        message=f"{words} {change.comment}".strip(),
        path=reverse("change", args=(change.pk,)),
        data={"decide": question.to_json(), "missing": standing.missing},
    )


def decided(change: ChangeRequest, *, words: str) -> None:
    services.notify(
        team=change.team,
        event=events.APPROVAL_DECIDED.code,
        subject=f"{title_of(change)}: {change.state}",
        message=words,
        path=reverse("change", args=(change.pk,)),
        data={"state": change.state},
    )


def title_of(change: ChangeRequest) -> str:
    revision = change.revision
    return descriptions.change_title(
        change.kind,
        deployment=change.deployment.name,
        version=revision.version.label if revision else "",
        revision=revision.number if revision else 0,
        restored=change.restored_number or 0,
        is_shadow=rollout_plan.is_shadow(change.plan),
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
