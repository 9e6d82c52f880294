"""Names of the enums of the OpenAPI document, which are otherwise made from the fields that use them."""

from __future__ import annotations

from typing import Final

from deployments.alerts.domain import catalogue
from deployments.alerts.domain.signals import AlertState
from deployments.approvals.domain.approver_roles import RequiredRole
from deployments.attestations.domain.signers import SignerKind
from deployments.attestations.domain.verdicts import AttestationState
from deployments.batch.domain.states import BatchState
from deployments.environments.domain.environment_rules import ApproverGroup
from deployments.guards.domain.answers.answer_metrics import AnswerKind as ObservationKind
from deployments.guards.domain.evidence import Verdict
from deployments.pipelines.domain.pipeline_spec import NodeKind
from deployments.sizing.domain.memory import BITS
from deployments.spec.domain.model_settings import PRECISIONS
from deployments.spec.domain.scaling import SCALING_KINDS
from deployments.states import (
    ChangeKind,
    ChangeState,
    ConsumerKind,
    DeploymentState,
    Environment,
    HealthCheckKind,
    HealthVerdict,
    ImportKind,
    ImportState,
    PipelineChangeKind,
    TargetMetric,
    VersionState,
)
from deployments.targets.domain.burn import TargetState
from fleet.actions.domain.kinds import ActionKind, TargetKind
from fleet.actions.domain.states import ActionState

OVERRIDES: Final = {
    "VersionState": [state.value for state in VersionState],
    "ChangeState": [state.value for state in ChangeState],
    "DeploymentState": [state.value for state in DeploymentState],
    "CallerKind": [kind.value for kind in ConsumerKind],
    "CallerKeyState": ["active", "ending", "expired", "revoked"],
    "StepState": ["done", "current", "ahead"],
    "NumberFormat": list(BITS),
    "ChangeKind": [kind.value for kind in ChangeKind],
    "Environment": [environment.value for environment in Environment],
    "HealthVerdict": [verdict.value for verdict in HealthVerdict],
    "HealthCheckKind": [kind.value for kind in HealthCheckKind],
    "Verdict": [verdict.value for verdict in Verdict],
    "ImportKind": [kind.value for kind in ImportKind],
    "ImportState": [state.value for state in ImportState],
    "ScanOutcome": ["clean", "code", "unreadable", "skipped", "unavailable"],
    "MemberRole": "portal.accounts.models.Role",
    "ApproverRole": [role.value for role in RequiredRole],
    "EnvironmentApprover": [role.value for role in ApproverGroup],
    "ObservationKind": [kind.value for kind in ObservationKind],
    "PlanKind": "deployments.plans.domain.rollout_plan.PlanKind",
    "PipelineChangeKind": [kind.value for kind in PipelineChangeKind],
    "PipelineNodeKind": [kind.value for kind in NodeKind],
    "AlertState": [state.value for state in AlertState],
    "AttestationState": [state.value for state in AttestationState],
    "SignerKind": [kind.value for kind in SignerKind],
    "AlertKind": list(catalogue.KINDS),
    "TargetMetric": [metric.value for metric in TargetMetric],
    "TargetState": [state.value for state in TargetState],
    "ScalingKind": list(SCALING_KINDS),
    "FleetActionKind": [kind.value for kind in ActionKind],
    "FleetActionState": [state.value for state in ActionState],
    "FleetTargetKind": [kind.value for kind in TargetKind],
    "BatchState": [state.value for state in BatchState],
    "ModelPrecision": list(PRECISIONS),
}
