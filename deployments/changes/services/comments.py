"""Comment on a change request: anyone who can see it may, also after it was decided."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from deployments import audit_actions
from deployments.changes.selectors import changes
from deployments.changes.services import approvals, notifications, transitions
from deployments.models import ChangeRequest, RequestComment
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict, Invalid

# A page shows all of them.
MOST_COMMENTS: Final = 200


def add(*, actor: User, change_id: int, text: str) -> RequestComment:
    """Add a comment, and notify the requester and everyone who commented before. Raises Invalid for an empty or
    too long one, Conflict when there are too many.
    """
    change = changes.get_visible(actor=actor, change_id=change_id)
    policy.require(actor, Action.VIEW, change)
    cleaned = approvals.clean(text, field="text")
    if not cleaned:
        raise Invalid("Write a comment first.", fields={"text": "empty"})
    with transaction.atomic():
        ChangeRequest.objects.select_for_update(no_key=True, of=("self",)).get(pk=change.pk)
        authors = list(change.comments.values_list("author_id", flat=True))
        if len(authors) >= MOST_COMMENTS:
            raise Conflict(
                f"The {change} has {MOST_COMMENTS} comments, and takes no more.",
                code="too_many_comments",
            )
        comment = RequestComment.objects.create(
            change=change, author=actor, text=cleaned, at=clock.now()
        )
        transitions.record(actor, change, audit_actions.CHANGE_COMMENTED, reason=cleaned)
        people = {change.requester_id, *authors} - {actor.pk}
        notifications.notify_comment(change, comment, people=people)
    return comment
