from deployments.models.delivery import (
    Approval,
    ChangeRequest,
    Deployment,
    DeploymentEvent,
    Revision,
)
from deployments.models.policies import ApprovalRule, EmergencyReview
from deployments.models.registry import Alias, Model, ModelVersion
from deployments.models.rollouts import Rollout, RolloutEvent, RolloutVerdict

__all__ = [
    "Alias",
    "Approval",
    "ApprovalRule",
    "ChangeRequest",
    "Deployment",
    "DeploymentEvent",
    "EmergencyReview",
    "Model",
    "ModelVersion",
    "Revision",
    "Rollout",
    "RolloutEvent",
    "RolloutVerdict",
]
