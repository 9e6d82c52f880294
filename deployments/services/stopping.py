"""Stopping a deployment: anyone of the team may, at once, because stopping is always safe.

Its route and workloads go, so that its address answers 404 and it holds no GPU. Its revisions stay;
starting again is a change request.
"""

from __future__ import annotations

from django.db import transaction

from deployments.domain.states import ChangeKind, ChangeState
from deployments.models import ChangeRequest, Deployment
from deployments.selectors import deployments as deployment_selectors
from deployments.selectors import rollouts as rollout_selectors
from deployments.services import actions, approving, change_states, desired, rollouts, timeline
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM, Action
from portal.audit import trail
from portal.core.errors import Conflict

_ENDED = "The deployment was stopped; ask again once it runs."


def stop(*, actor: User, deployment_id: int, reason: str = "") -> Deployment:
    """Stopping what is stopped changes nothing. An open rollout is aborted, and what waits for
    approval is withdrawn, because both were about a deployment that runs.
    """
    deployment = deployment_selectors.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    policy.require(actor, Action.STOP, deployment)
    why = approving.clean(reason, field="reason")
    _require_stoppable(deployment)
    if deployment.is_stopped:
        return deployment
    rollout = rollout_selectors.current(deployment)
    if rollout is not None:
        rollouts.abort(actor=actor, rollout_id=rollout.pk, reason="the deployment is stopped")
    with transaction.atomic():
        _lock(deployment)
        _end_changes(deployment)
        desired.stop(deployment)
        trail.record(
            actor=actor,
            action=actions.DEPLOYMENT_STOPPED,
            obj=deployment,
            label=str(deployment),
            team_slug=deployment.team.slug,
            before={"is_stopped": False},
            after={"is_stopped": True},
            reason=why,
        )
        words = f"stopped: {why}" if why else "stopped"
        timeline.note(deployment=deployment, kind="stopped", message=words, actor=actor)
    return deployment


def _require_stoppable(deployment: Deployment) -> None:
    if deployment.is_retired or deployment.is_retiring:
        raise Conflict(f"{deployment} is retired already.", code="retired")
    if deployment.stable_revision is None:
        raise Conflict(
            f"{deployment} serves nothing yet; withdraw its request instead.", code="not_serving"
        )


def _lock(deployment: Deployment) -> None:
    rows = Deployment.objects.select_for_update(no_key=True, of=("self",))
    if rows.filter(pk=deployment.pk, is_stopped=False, is_retiring=False).first() is None:
        raise Conflict(f"{deployment} was stopped or retired a moment ago.", code="stopped")


def _end_changes(deployment: Deployment) -> None:
    """A rollout's own request ends with the rollout, a retirement goes on."""
    rows = ChangeRequest.objects.filter(deployment=deployment).exclude(kind=ChangeKind.RETIRE)
    related = rows.select_related("deployment__team", "revision")
    for change in related.filter(state__in=(ChangeState.SUBMITTED, ChangeState.APPROVED)):
        change_states.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.WITHDRAWN,
            action=actions.CHANGE_WITHDRAWN,
            reason=_ENDED,
        )
    for change in related.filter(state=ChangeState.APPLYING, rollout=None):
        change_states.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.FAILED,
            action=actions.CHANGE_FAILED,
            reason=_ENDED,
        )
