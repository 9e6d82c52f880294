"""Write the timeline of a deployment and the history of a rollout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployments.models import Deployment, DeploymentEvent, Rollout, RolloutEvent
from portal.accounts.policy import Actor, System, actor_name
from portal.core import clock


def note(
    *,
    deployment: Deployment,
    kind: str,
    message: str,
    actor: Actor,
    revision_number: int | None = None,
) -> None:
    line(
        deployment=deployment,
        kind=kind,
        message=message,
        actor=actor,
        revision_number=revision_number,
    ).save()


def line(
    *,
    deployment: Deployment,
    kind: str,
    message: str,
    actor: Actor,
    revision_number: int | None = None,
) -> DeploymentEvent:
    """Return an unsaved line, for bulk_create."""
    return DeploymentEvent(
        deployment=deployment,
        at=clock.now(),
        kind=kind,
        message=message,
        revision_number=revision_number,
        actor_name="" if isinstance(actor, System) else actor_name(actor),
    )


def note_rollout(
    *,
    rollout: Rollout,
    kind: str,
    message: str,
    actor: Actor,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Add a line to the rollout's history and to the deployment's timeline."""
    name = "" if isinstance(actor, System) else actor_name(actor)
    RolloutEvent.objects.create(
        rollout=rollout,
        at=clock.now(),
        kind=kind,
        message=message,
        actor_name=name,
        step_index=rollout.step_index,
        data=dict(data or {}),
    )
    note(
        deployment=rollout.deployment,
        kind=f"rollout {kind}"[:30],
        message=message,
        actor=actor,
        revision_number=rollout.candidate_revision.number,
    )
