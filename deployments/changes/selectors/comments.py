"""The comments on a change request, and the people who were notified about it."""

from __future__ import annotations

from django.db.models import QuerySet
from django.urls import reverse

from deployments.models import ChangeRequest, RequestComment
from portal.notifications import events, sent
from portal.notifications.sent import Recipient


def list_comments(change: ChangeRequest) -> QuerySet[RequestComment]:
    """List the comments on a request that the reader may see, oldest first."""
    return change.comments.select_related("author").order_by("id")


def list_asked(change: ChangeRequest) -> list[Recipient]:
    """List who was sent a message that the request waits for approval, oldest first."""
    return sent.list_recipients(
        team=change.team,
        events=[events.APPROVAL_REQUESTED.code],
        path=reverse("change", args=(change.pk,)),
        since=change.created_at,
    )
