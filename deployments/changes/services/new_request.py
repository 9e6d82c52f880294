"""Send a change request: one open request for each subject, bound to its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction

from deployments import audit_actions
from deployments.approvals.selectors import approvals as approval_selectors
from deployments.changes.selectors.subjects import Rendered
from deployments.changes.services import approvals, notifications, transitions
from deployments.changes.services.transitions import SUBMITTED_SECONDS
from deployments.models import ChangeRequest, Deployment, Pipeline
from deployments.states import ChangeKind, ChangeState
from portal.accounts.models import User
from portal.core import clock, tracing
from portal.core.errors import Conflict


def submit(
    *,
    actor: User,
    change: ChangeRequest,
    after: dict[str, Any],
    before: dict[str, Any] | None = None,
    rendered: Rendered | None = None,
) -> ChangeRequest:
    """Save a new request for its approvers. Call inside a transaction.

    `before` and `after` go to the audit trail; `rendered` is what it writes, if that is rendered already.
    """
    at = clock.now()
    change.team, change.requester, change.state = change.subject.team, actor, ChangeState.SUBMITTED
    change.created_at = change.submitted_at = at
    change.trace = tracing.current()
    change.deadline_at = change.next_check_at = at + timedelta(seconds=SUBMITTED_SECONDS)
    approvals.bind(change, rendered)
    change.save()
    transitions.record(
        actor,
        change,
        audit_actions.CHANGE_REQUESTED,
        before=before,
        after={"state": change.state, "kind": change.kind, **after},
        reason=change.comment,
    )
    if not approval_selectors.status_at_request(change).is_satisfied:
        notifications.approval_requested(change)
    return change


@contextmanager
def only_one(subject: Deployment | Pipeline) -> Iterator[None]:
    """Open a transaction that raises Conflict if another open request for the subject came first."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        raise Conflict(
            f"Someone else requested a change to {subject} at the same time. Reload the page.",
            code="change_open",
        ) from error


@contextmanager
def new_name(label: str) -> Iterator[None]:
    """Open a transaction that raises Conflict if the name was taken meanwhile."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        raise Conflict(
            f"{label} was just taken. Choose another name.",
            code="name_taken",
            fields={"name": "taken"},
        ) from error


def already_open(change: ChangeRequest) -> Conflict:
    """Return the error why no further request is possible, with what ends the open one."""
    fix = "withdraw it"
    if change.state == ChangeState.APPLYING:
        is_moved = change.kind in (ChangeKind.CANARY, ChangeKind.ROLL_BACK)
        noun = "pipeline" if change.pipeline_id else "deployment"
        fix = "abort its rollout" if is_moved else f"stop the {noun}"
    return Conflict(
        f"The {change} (request {change.pk}) is {change.state}. Let it finish, or {fix} first.",
        code="change_open",
    )
