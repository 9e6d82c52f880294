"""Queue notifications about a rollout. Call inside the transaction of the change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.urls import reverse

from deployments.models import Rollout
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.states import RolloutPhase
from portal.notifications import events, links, services
from portal.notifications.events import Event

_EVENTS: Final[Mapping[RolloutPhase, Event]] = {
    RolloutPhase.RUNNING: events.ROLLOUT_MOVED,
    RolloutPhase.PAUSED: events.ROLLOUT_MOVED,
    RolloutPhase.PROMOTING: events.ROLLOUT_MOVED,
    RolloutPhase.WATCHING: events.ROLLOUT_MOVED,
    RolloutPhase.ABORTING: events.ROLLOUT_ABORTED,
    RolloutPhase.ABORTED: events.ROLLOUT_FINISHED,
    RolloutPhase.COMPLETED: events.ROLLOUT_FINISHED,
}


def notify_start(rollout: Rollout, *, message: str) -> None:
    _notify(rollout, events.ROLLOUT_STARTED, message, {})


def notify_progress(rollout: Rollout, *, message: str) -> None:
    """Notify people of each phase and step that they wait for; `started` covers preparing."""
    event = _EVENTS.get(RolloutPhase(rollout.phase))
    if event is not None:
        data = {"phase": rollout.phase, "step_index": rollout.step_index}
        _notify(rollout, event, message, data)


def waits(snapshot: RolloutSnapshot, *, message: str, evidence_hash: str) -> None:
    """Notify people of a step that waits to be promoted: those who may decide get a link that is bound to this
    evidence.
    """
    rollout, step = snapshot.rollout, snapshot.progress.step
    question = links.DecisionRequest(
        kind=links.ROLLOUT,
        object_id=rollout.pk,
        requester_id=rollout.requested_by_id,
        evidence_hash=evidence_hash,
        step_index=rollout.step_index,
    )
    mirrored = " mirrored" if snapshot.plan.is_shadow else ""
    text = f"At {step.weight}%{mirrored}: {message}. Promote it, or leave it at this step."
    _notify(rollout, events.ROLLOUT_WAITS, text, {"decide": question.to_json()})


def alarm(rollout: Rollout, *, message: str) -> None:
    _notify(rollout, events.ROLLOUT_ALARM, message, {})


def _notify(rollout: Rollout, event: Event, message: str, data: Mapping[str, Any]) -> None:
    deployment = rollout.deployment
    candidate = rollout.candidate_revision.version.label
    services.notify(
        team=deployment.team,
        event=event.code,
        subject=f"{candidate} on {deployment}: {event.phrase}",
        message=message,
        path=reverse("rollout", args=(deployment.team.slug, deployment.name)),
        data={"rollout_id": rollout.pk, **data},
    )
