"""Queue notifications about a change request. Call inside its transaction."""

from __future__ import annotations

from collections.abc import Collection

from django.urls import reverse

from deployments.approvals.selectors import approvals
from deployments.changes.selectors.subjects import subject_of
from deployments.models import ChangeRequest, RequestComment
from portal.notifications import events, links, services


def approval_requested(change: ChangeRequest) -> None:
    decision = links.DecisionRequest(
        kind=links.CHANGE,
        object_id=change.pk,
        requester_id=change.requester_id,
        evidence_hash=change.evidence_hash,
    )
    status = approvals.status_of(change)
    missing = f"{status.description[:1].upper()}{status.description[1:]}."
    message = f"{change.requester.display_name} sent a request. {missing}"
    services.notify(
        team=change.team,
        event=events.APPROVAL_REQUESTED.code,
        subject=title_of(change),
        message=f"{message} {change.comment}".strip(),
        path=reverse("change", args=(change.pk,)),
        data={"decide": decision.to_json(), "missing": status.missing},
    )


def notify_decision(change: ChangeRequest, *, message: str) -> None:
    _notify(change, events.APPROVAL_DECIDED.code, message)


def notify_result(change: ChangeRequest, *, message: str) -> None:
    _notify(change, events.CHANGE_FINISHED.code, message)


def notify_comment(
    change: ChangeRequest, comment: RequestComment, *, people: Collection[int]
) -> None:
    """Tell these people, by id, what somebody wrote about the request."""
    services.notify_people(
        team=change.team,
        event=events.CHANGE_COMMENTED.code,
        subject=f"Comment on {title_of(change)}",
        message=f"{comment.author.display_name} wrote: {comment.text}",
        path=reverse("change", args=(change.pk,)),
        people=people,
    )


def title_of(change: ChangeRequest) -> str:
    return subject_of(change).describe(change).title


def _notify(change: ChangeRequest, event: str, message: str) -> None:
    services.notify(
        team=change.team,
        event=event,
        subject=f"{title_of(change)}: {change.state}",
        message=message,
        path=reverse("change", args=(change.pk,)),
        data={"state": change.state},
    )
