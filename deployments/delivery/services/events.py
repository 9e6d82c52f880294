"""The lines of the timeline and of the audit trail that an observation brings about."""

from __future__ import annotations

from deployments import audit_actions
from deployments.delivery.domain import progress
from deployments.delivery.domain.drift import Drift, Outcome
from deployments.delivery.services.reconcile_state import Found
from deployments.delivery.services.snapshot import Seen
from deployments.models import Deployment, DeploymentEvent
from deployments.serving.services import timeline
from deployments.states import DeploymentState
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.audit.models import AuditEvent


def told(before: Drift, found: Found) -> list[tuple[str, str]]:
    """Lines of the timeline, as kind and words."""
    lines = []
    if found.drift != before and found.drift.outcome == Outcome.HEALED:
        lines.append(("drift", f"{found.drift.words}; reverted to the approved manifests"))
    elif found.drift != before and found.drift.outcome == Outcome.HELD:
        lines.append(("drift held", f"{found.drift.words}; held for review"))
    elif found.drift != before:
        lines.append(("drift over", "the cluster matches the approved manifests again"))
    if found.pruned:
        lines.append(("pruned", f"removed orphaned objects: {', '.join(found.pruned)}"))
    return lines


def stage_lines(deployment: Deployment, seen: Seen) -> list[DeploymentEvent]:
    """One line per stage reached, and one when it starts to fail."""
    stages, found = progress.STAGES, seen.progress
    number, name = seen.revision.number, seen.revision.workload_name
    before = seen.before.get("stage", "missing")
    told: list[tuple[str, str]] = []
    if found.stage != before:
        reached = stages[stages.index(before) + 1 : stages.index(found.stage) + 1]
        told += [(stage, progress.event_words(stage, name)) for stage in reached or [found.stage]]
    if found.is_failing and seen.before.get("message") != found.message:
        told.append(("failed", f"{name}: {found.message}"))
    return [
        timeline.line(
            deployment=deployment,
            kind=kind,
            message=words,
            actor=SYSTEM,
            revision_number=number,
        )
        for kind, words in told
    ]


def state_event(deployment: Deployment, state: DeploymentState, reason: str) -> AuditEvent:
    is_retired = state == DeploymentState.RETIRED
    return trail.event(
        actor=SYSTEM,
        action=audit_actions.DEPLOYMENT_RETIRED if is_retired else audit_actions.DEPLOYMENT_STATE,
        obj=deployment,
        label=str(deployment),
        team_slug=deployment.team.slug,
        before={"state": deployment.state},
        after={"state": state},
        reason=reason,
    )
