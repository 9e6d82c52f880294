"""Edit and resubmit: a new request of a deployment in the place of one that waits, was rejected or expired."""

from __future__ import annotations

from typing import Any, Final

from deployments.changes.selectors import changes
from deployments.changes.services import decisions
from deployments.manifests.selectors import rendering
from deployments.models import ChangeRequest
from deployments.states import ChangeState
from portal.accounts.models import User
from portal.core.errors import Conflict, Forbidden

_REASON: Final = "Replaced by a new request."


def get_replaceable(*, actor: User, change_id: int) -> ChangeRequest:
    """Return a request that the actor may edit and resubmit. Raises NotFound, Forbidden for a request of somebody
    else, Conflict for one that cannot be replaced.
    """
    change = changes.get_visible(actor=actor, change_id=change_id)
    if change.requester_id != actor.pk:
        raise Forbidden(
            f"Only {change.requester.display_name} can edit and resubmit this request.",
            code="not_the_requester",
        )
    if not changes.may_resubmit(actor, change):
        raise Conflict(
            f"The {change} is {change.state}. Only a deployment that waits for approval, was rejected or "
            "expired can be edited and resubmitted, once.",
            code="change_state",
        )
    return change


def request_body(change: ChangeRequest) -> dict[str, Any]:
    """Build the request of a deployment with the values of this one."""
    if change.deployment is None or change.revision is None:
        raise Conflict(f"The {change} has no settings to copy.", code="nothing_to_copy")
    spec = rendering.spec_of(change.revision).to_json()
    return {
        "version_id": change.revision.version_id,
        "cluster_id": change.deployment.cluster_id,
        "name": change.deployment.name,
        "environment": change.deployment.environment,
        "comment": change.comment,
        "spec": {name: value for name, value in spec.items() if name not in ("image", "schema")},
    }


def withdraw_replaced(*, actor: User, change: ChangeRequest) -> None:
    """Withdraw a request that still waits. Call inside the transaction of the one that replaces it."""
    if change.state == ChangeState.SUBMITTED:
        decisions.withdraw(actor=actor, change_id=change.pk, reason=_REASON)
