"""Whom a rollout is told to. Inside the transaction of what it tells of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.urls import reverse

from deployments.models import Rollout
from deployments.plans.domain import rollout_plan
from deployments.plans.selectors import auto_promotion
from deployments.states import RolloutPhase
from portal.notifications import events, links, services
from portal.notifications.events import Event

_EVENTS: Final[Mapping[RolloutPhase, Event]] = {
    RolloutPhase.RUNNING: events.ROLLOUT_MOVED,
    RolloutPhase.PAUSED: events.ROLLOUT_MOVED,
    RolloutPhase.PROMOTING: events.ROLLOUT_MOVED,
    RolloutPhase.ABORTING: events.ROLLOUT_ABORTED,
    RolloutPhase.ABORTED: events.ROLLOUT_FINISHED,
    RolloutPhase.COMPLETED: events.ROLLOUT_FINISHED,
}


def started(rollout: Rollout, *, words: str) -> None:
    _tell(rollout, events.ROLLOUT_STARTED, words, {})


def moved(rollout: Rollout, *, words: str) -> None:
    """Each phase and step that people wait for; preparing is told of by `started`."""
    event = _EVENTS.get(RolloutPhase(rollout.phase))
    if event is not None:
        _tell(rollout, event, words, {"phase": rollout.phase, "step_index": rollout.step_index})


def waits(rollout: Rollout, *, words: str, evidence_hash: str) -> None:
    """A step may be promoted: people who may decide get a link that is bound to this evidence."""
    if auto_promotion.steps_of(rollout)[rollout.step_index].auto_promote:
        return
    question = links.DecisionRequest(
        kind=links.ROLLOUT,
        object_id=rollout.pk,
        requester_id=rollout.requested_by_id,
        evidence_hash=evidence_hash,
        step_index=rollout.step_index,
    )
    weight = rollout.steps[rollout.step_index]["weight"]
    share = f"{weight}% mirrored" if rollout_plan.is_shadow(rollout.plan) else f"{weight}%"
    said = f"At {share}: {words}. Promote it, or leave it at this step."
    _tell(rollout, events.ROLLOUT_WAITS, said, {"decide": question.to_json()})


def alarm(rollout: Rollout, *, words: str) -> None:
    _tell(rollout, events.ROLLOUT_ALARM, words, {})


def _tell(rollout: Rollout, event: Event, words: str, data: Mapping[str, Any]) -> None:
    deployment = rollout.deployment
    candidate = rollout.candidate_revision.version.label
    services.notify(
        team=deployment.team,
        event=event.code,
        subject=f"{candidate} on {deployment}: {event.phrase}",
        message=words,
        path=reverse("rollout", args=(deployment.team.slug, deployment.name)),
        data={"rollout_id": rollout.pk, **data},
    )
