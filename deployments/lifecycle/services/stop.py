"""Stopping a deployment: at once by anyone of the team, but in a protected environment only as a
change that is approved, because stopping ends its answers. Pausing and aborting a rollout do not.

Its route and workloads go, so that its address answers 404 and it holds no GPU. Its revisions stay;
starting again is a change request.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from deployments.changes.services import approvals
from deployments.changes.services.open_requests import end_open_requests, lock_running
from deployments.models import Deployment
from deployments.rollouts.selectors import rollouts as rollout_selectors
from deployments.rollouts.services import actions as rollout_actions
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.serving.services.stopping import begin, require_free
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import Conflict

_ENDED: Final = "The deployment was stopped. Start it, then send the request again."
_NEVER_SERVED: Final = (
    "The deployment was stopped before it served. Request its start to try again, or its retirement to "
    "free its name."
)


def stop(*, actor: User, deployment_id: int, reason: str = "") -> Deployment:
    """Stop a deployment. Stopping a stopped one changes nothing. An open rollout is aborted and a request that
    waits for approval is withdrawn, because both assume a running deployment. Raises Forbidden where it
    needs approval.
    """
    deployment = deployment_selectors.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.STOP, deployment)
    why = approvals.clean(reason, field="reason")
    _require_stoppable(deployment)
    if deployment.is_stopped:
        return deployment
    require_free(deployment)
    rollout = rollout_selectors.current(deployment)
    if rollout is not None:
        rollout_actions.abort(
            actor=actor, rollout_id=rollout.pk, reason="the deployment is stopped"
        )
    with transaction.atomic():
        lock_running(deployment)
        end_open_requests(deployment, _ENDED if deployment.first_ready_at else _NEVER_SERVED)
        begin(actor=actor, deployment=deployment, reason=why)
    return deployment


def _require_stoppable(deployment: Deployment) -> None:
    if deployment.is_retired or deployment.is_retiring:
        raise Conflict(f"{deployment} is already retired.", code="retired")
    if deployment.stable_revision is None:
        raise Conflict(
            f"{deployment} is not serving yet. Withdraw its request instead.", code="not_serving"
        )
