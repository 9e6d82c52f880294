from deployments.models.delivery import (
    Approval,
    ChangeRequest,
    Deployment,
    DeploymentEvent,
    GivenApproval,
    Revision,
)
from deployments.models.git_delivery import GitDelivery, GitExport
from deployments.models.own_requests import OwnRequest
from deployments.models.pipelines import Pipeline, PipelineApproval, PipelineChange
from deployments.models.policies import ApprovalRule, EmergencyReview
from deployments.models.prometheus import PrometheusReading
from deployments.models.quality import (
    EmbeddingReference,
    GoldenRequest,
    GoldenResult,
    GoldenRun,
    QualityObservation,
)
from deployments.models.registry import Alias, Model, ModelVersion
from deployments.models.rollout_limits import RolloutLimit
from deployments.models.rollout_templates import RolloutTemplate
from deployments.models.rollouts import Rollout, RolloutEvent, RolloutVerdict

__all__ = [
    "Alias",
    "Approval",
    "ApprovalRule",
    "ChangeRequest",
    "Deployment",
    "DeploymentEvent",
    "EmbeddingReference",
    "EmergencyReview",
    "GitDelivery",
    "GitExport",
    "GivenApproval",
    "GoldenRequest",
    "GoldenResult",
    "GoldenRun",
    "Model",
    "ModelVersion",
    "OwnRequest",
    "Pipeline",
    "PipelineApproval",
    "PipelineChange",
    "PrometheusReading",
    "QualityObservation",
    "Revision",
    "Rollout",
    "RolloutEvent",
    "RolloutLimit",
    "RolloutTemplate",
    "RolloutVerdict",
]
