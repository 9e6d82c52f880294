"""The lines of the timeline and the audit trail that an observation produces."""

from __future__ import annotations

from deployments import audit_actions
from deployments.delivery.domain import progress
from deployments.delivery.domain.drift import DriftOutcome
from deployments.delivery.services.reconcile_state import DriftReport
from deployments.delivery.services.snapshot import RevisionSnapshot
from deployments.models import Deployment, DeploymentEvent
from deployments.serving.services import timeline
from deployments.states import DeploymentState
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.audit.models import AuditEvent


def drift_messages(report: DriftReport) -> list[tuple[str, str]]:
    """Return kind and message of each line of the timeline."""
    drift, has_changed, messages = report.drift, report.drift != report.before, []
    if has_changed and drift.outcome == DriftOutcome.REVERTED:
        messages.append(("drift", f"{drift.description}; reverted to the approved manifests"))
    elif has_changed and drift.outcome == DriftOutcome.PENDING:
        messages.append(("drift held", f"{drift.description}; held for review"))
    elif has_changed:
        messages.append(("drift over", "the cluster matches the approved manifests again"))
    if report.pruned:
        messages.append(("pruned", f"removed orphaned objects: {', '.join(report.pruned)}"))
    return messages


def stage_lines(deployment: Deployment, snapshot: RevisionSnapshot) -> list[DeploymentEvent]:
    """Return a line for each stage reached, and one when the revision starts to fail."""
    stages, now, before = progress.STAGES, snapshot.progress, snapshot.before
    name = snapshot.revision.workload_name
    messages: list[tuple[str, str]] = []
    if now.stage != before.stage:
        reached = stages[stages.index(before.stage) + 1 : stages.index(now.stage) + 1]
        messages += [
            (stage, progress.describe_stage(stage, name)) for stage in reached or [now.stage]
        ]
    if now.is_failing and before.message != now.message:
        messages.append(("failed", f"{name}: {now.message}"))
    return [
        timeline.line(
            deployment=deployment,
            kind=kind,
            message=message,
            actor=SYSTEM,
            revision_number=snapshot.revision.number,
        )
        for kind, message in messages
    ]


def queue_lines(deployment: Deployment, snapshot: RevisionSnapshot) -> list[DeploymentEvent]:
    """Return a line when the revision begins to wait, is admitted or is evicted, but not for each move of its
    position.
    """
    now, before = snapshot.queue, snapshot.before.queue
    if now is None or (before is not None and now.state == before.state):
        return []
    if before is None and not (now.is_waiting or now.is_ignored):
        return []  # It never waited.
    return [
        timeline.line(
            deployment=deployment,
            kind="queue",
            message=f"{snapshot.revision.workload_name}: {now.message}",
            actor=SYSTEM,
            revision_number=snapshot.revision.number,
        )
    ]


def state_event(deployment: Deployment, state: DeploymentState, reason: str) -> AuditEvent:
    is_retired = state == DeploymentState.RETIRED
    return trail.event(
        actor=SYSTEM,
        action=audit_actions.DEPLOYMENT_RETIRED if is_retired else audit_actions.DEPLOYMENT_STATE,
        obj=deployment,
        team_slug=deployment.team.slug,
        before={"state": deployment.state},
        after={"state": state},
        reason=reason,
    )
