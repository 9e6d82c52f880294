"""What the portal answers, as frozen dataclasses.

They are written by hand: generated classes would be 200, most never used here, with the portal's
internal names. `tests/client/test_types_agree_with_the_document.py` compares every field of every
class with docs/openapi.yaml (existence, type, null), so the two cannot drift apart. `raw` is the
whole answer, with fields that this client does not name.
"""

from slipway_client.types.account import Cluster, Grant, Me, MyTeam
from slipway_client.types.alerts import Alert
from slipway_client.types.batch import BatchEstimate, BatchJob, BatchJobDetails, BatchPrice
from slipway_client.types.changes import (
    Change,
    ChangePreflight,
    Cost,
    Preflight,
    PreflightCheck,
    Promotion,
    PromotionEvidence,
    PromotionTarget,
    RequiredApproval,
    WaitingRequest,
)
from slipway_client.types.costs import CostRow, Costs, CostsKey, UnusualDay
from slipway_client.types.deployments import (
    Deployment,
    DeploymentEvent,
    DeploymentStats,
    Desired,
    Log,
    LogPod,
    Observed,
    Revision,
    RevisionStats,
    ServingStats,
)
from slipway_client.types.fleet import (
    ActionEvidence,
    Affected,
    FieldChange,
    FleetAction,
    FleetActionDetails,
    HeldBudget,
    Node,
    Notice,
)
from slipway_client.types.imports import Import, MlflowModel, MlflowServer, MlflowVersion
from slipway_client.types.registry import (
    Alias,
    ArtifactFile,
    Attestation,
    Check,
    ListedVersion,
    Model,
    Parts,
    PartUrl,
    Signature,
    StartedUpload,
    Tensor,
    Version,
)
from slipway_client.types.rollouts import Guard, Rollout, RolloutEvent, RolloutNews, StepState

__all__ = [
    "ActionEvidence",
    "Affected",
    "Alert",
    "Alias",
    "ArtifactFile",
    "Attestation",
    "BatchEstimate",
    "BatchJob",
    "BatchJobDetails",
    "BatchPrice",
    "Change",
    "ChangePreflight",
    "Check",
    "Cluster",
    "Cost",
    "CostRow",
    "Costs",
    "CostsKey",
    "Deployment",
    "DeploymentEvent",
    "DeploymentStats",
    "Desired",
    "FieldChange",
    "FleetAction",
    "FleetActionDetails",
    "Grant",
    "Guard",
    "HeldBudget",
    "Import",
    "ListedVersion",
    "Log",
    "LogPod",
    "Me",
    "MlflowModel",
    "MlflowServer",
    "MlflowVersion",
    "Model",
    "MyTeam",
    "Node",
    "Notice",
    "Observed",
    "PartUrl",
    "Parts",
    "Preflight",
    "PreflightCheck",
    "Promotion",
    "PromotionEvidence",
    "PromotionTarget",
    "RequiredApproval",
    "Revision",
    "RevisionStats",
    "Rollout",
    "RolloutEvent",
    "RolloutNews",
    "ServingStats",
    "Signature",
    "StartedUpload",
    "StepState",
    "Tensor",
    "UnusualDay",
    "Version",
    "WaitingRequest",
]
