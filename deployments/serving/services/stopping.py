"""Stop a deployment, and decide whether the stop of one or of a pipeline needs approval."""

from __future__ import annotations

from deployments import audit_actions
from deployments.environments.selectors import environment_rules
from deployments.models import Deployment, Pipeline
from deployments.serving.services import desired_state, timeline
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.core.errors import Forbidden


def needs_approval(served: Deployment | Pipeline) -> bool:
    """Return whether a stop needs approval. Nobody relies yet on a deployment or pipeline that never served."""
    has_served = served.first_ready_at is not None
    rules = environment_rules.in_force(served.environment, served.team_id)
    return has_served and rules.stop_needs_approval


def require_free(served: Deployment | Pipeline) -> None:
    """Require that a stop needs no approval. Raises Forbidden where it does."""
    if needs_approval(served):
        raise Forbidden(
            f"{served} is in {served.environment} and has served, so stopping it needs the "
            "same approval as starting it: request the stop instead.",
            code="approval_required",
        )


def begin(*, actor: Actor, deployment: Deployment, reason: str) -> None:
    """Call it inside the transaction of the decision."""
    desired_state.stop(deployment)
    trail.record(
        actor=actor,
        action=audit_actions.DEPLOYMENT_STOPPED,
        obj=deployment,
        team_slug=deployment.team.slug,
        before={"is_stopped": False},
        after={"is_stopped": True},
        reason=reason,
    )
    message = f"stopped: {reason}" if reason else "stopped"
    timeline.note(deployment=deployment, kind="stopped", message=message, actor=actor)
