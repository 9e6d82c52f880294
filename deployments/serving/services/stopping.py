"""Stop a deployment, and decide whether that needs approval."""

from __future__ import annotations

from deployments import audit_actions
from deployments.models import Deployment
from deployments.serving.services import desired_state, timeline
from deployments.states import Environment
from portal.accounts.policy import Actor
from portal.audit import trail


def needs_approval(deployment: Deployment) -> bool:
    """Nobody relies yet on a deployment that never served."""
    has_served = deployment.first_ready_at is not None
    return Environment(deployment.environment).is_protected and has_served


def begin(*, actor: Actor, deployment: Deployment, reason: str) -> None:
    """Call it inside the transaction of the decision."""
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
    message = f"stopped: {reason}" if reason else "stopped"
    timeline.note(deployment=deployment, kind="stopped", message=message, actor=actor)
