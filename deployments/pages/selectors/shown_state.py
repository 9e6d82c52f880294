"""The state of a deployment as people read it: one place for its page, the lists, the home page and messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.models import Deployment, Rollout
from deployments.plans.domain import descriptions
from deployments.plans.selectors import plans
from deployments.serving.selectors import deployments
from deployments.states import DeploymentState, RolloutPhase

# A rollout is the better description of these; "degraded" and "pending" say more than it.
_REPLACED: Final = (DeploymentState.READY, DeploymentState.PROGRESSING)
_AS_CANARY: Final = (RolloutPhase.PREPARING, RolloutPhase.RUNNING)


@dataclass(frozen=True, slots=True)
class ShownState:
    """A state with its tone and text; empty text means that of the state. `reason` is one line, or empty."""

    state: str
    text: str = ""
    reason: str = ""


def describe_deployment(deployment: Deployment, rollout: Rollout | None) -> ShownState:
    """Describe the state. An open rollout replaces it, unless the deployment is degraded or pending."""
    reason = deployment.state_reason
    if deployments.is_stopping(deployment):
        return ShownState("stopping", reason=reason)
    if rollout is not None and deployment.state in _REPLACED:
        return ShownState(tone_of(rollout), _describe_rollout(deployment, rollout), reason)
    return ShownState(deployment.state, reason=reason)


def tone_of(rollout: Rollout) -> str:
    return "canary" if rollout.phase in _AS_CANARY else str(rollout.phase)


def _describe_rollout(deployment: Deployment, rollout: Rollout) -> str:
    plan = plans.plan_of(rollout)
    if not plan.steps:
        return descriptions.describe_direct(rollout.phase)
    return descriptions.describe_progress_briefly(
        rollout.phase,
        weight=deployment.candidate_weight,
        mirror=deployment.candidate_mirror,
        is_shadow=plan.is_shadow,
    )
