from deployments.models.advice import AdviceItem
from deployments.models.alerts import Alert
from deployments.models.approvals import ApprovalRule
from deployments.models.attestations import Attestation, SigningRule, TrustedSigner, TrustRoot
from deployments.models.auto_promotion import RolloutLimit
from deployments.models.batch import BatchChunk, BatchJob, BatchUpload
from deployments.models.callers import (
    CallerKey,
    Consumer,
    KeysAtGateway,
    KeyTokens,
    SigningKey,
    TokenIssuer,
)
from deployments.models.changes import (
    Approval,
    ChangeRequest,
    EmergencyReview,
    RequestComment,
)
from deployments.models.deployments import Deployment, DeploymentEvent, Revision
from deployments.models.environments import EnvironmentRule
from deployments.models.form_drafts import FormDraft
from deployments.models.git import GitDelivery, GitExport
from deployments.models.health import AnswerDay, DeploymentHealth, HealthRecord
from deployments.models.imports import Import, ImportedFile
from deployments.models.load_tests import LoadTestPlace, LoadTestRun
from deployments.models.pipelines import Pipeline, PipelineKey
from deployments.models.plan_templates import RolloutTemplate
from deployments.models.presets import DeploymentPreset
from deployments.models.prometheus import PrometheusReading
from deployments.models.quality import (
    EmbeddingReference,
    GoldenRequest,
    GoldenResult,
    GoldenRun,
    QualityObservation,
)
from deployments.models.registry import Alias, ArtifactFile, Model, ModelVersion
from deployments.models.registry_search import VersionDocument, VersionLabel, VersionMetric
from deployments.models.rollouts import Rollout, RolloutEvent, RolloutVerdict
from deployments.models.safeguards import SafeguardRequest
from deployments.models.synthetic_requests import SyntheticHour, SyntheticRequest
from deployments.models.targets import ServiceTarget, TargetCount

__all__ = [
    "AdviceItem",
    "Alert",
    "Alias",
    "AnswerDay",
    "Approval",
    "ApprovalRule",
    "ArtifactFile",
    "Attestation",
    "BatchChunk",
    "BatchJob",
    "BatchUpload",
    "CallerKey",
    "ChangeRequest",
    "Consumer",
    "Deployment",
    "DeploymentEvent",
    "DeploymentHealth",
    "DeploymentPreset",
    "EmbeddingReference",
    "EmergencyReview",
    "EnvironmentRule",
    "FormDraft",
    "GitDelivery",
    "GitExport",
    "GoldenRequest",
    "GoldenResult",
    "GoldenRun",
    "HealthRecord",
    "Import",
    "ImportedFile",
    "KeyTokens",
    "KeysAtGateway",
    "LoadTestPlace",
    "LoadTestRun",
    "Model",
    "ModelVersion",
    "Pipeline",
    "PipelineKey",
    "PrometheusReading",
    "QualityObservation",
    "RequestComment",
    "Revision",
    "Rollout",
    "RolloutEvent",
    "RolloutLimit",
    "RolloutTemplate",
    "RolloutVerdict",
    "SafeguardRequest",
    "ServiceTarget",
    "SigningKey",
    "SigningRule",
    "SyntheticHour",
    "SyntheticRequest",
    "TargetCount",
    "TokenIssuer",
    "TrustRoot",
    "TrustedSigner",
    "VersionDocument",
    "VersionLabel",
    "VersionMetric",
]
