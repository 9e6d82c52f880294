"""Stopping a deployment: what it means for its desired state, and who must approve it."""

from __future__ import annotations

from deployments import audit_actions
from deployments.models import Deployment
from deployments.serving.services import desired_state, timeline
from deployments.states import Environment
from portal.accounts.policy import Actor
from portal.audit import trail


def needs_approval(deployment: Deployment) -> bool:
    """What has never served has nobody who relies on its answers."""
    has_served = deployment.first_ready_at is not None
    return Environment(deployment.environment).is_protected and has_served


def begin(*, actor: Actor, deployment: Deployment, reason: str) -> None:
    """Inside the transaction of whatever decided."""
    desired_state.stop(deployment)
    trail.record(
        actor=actor,
        action=audit_actions.DEPLOYMENT_STOPPED,
        obj=deployment,
        label=str(deployment),
        team_slug=deployment.team.slug,
        before={"is_stopped": False},
        after={"is_stopped": True},
        reason=reason,
    )
    words = f"stopped: {reason}" if reason else "stopped"
    timeline.note(deployment=deployment, kind="stopped", message=words, actor=actor)
