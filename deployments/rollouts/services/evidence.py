"""Store the evidence of a rollout: what pages show, and what a decision binds to."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction

from deployments.guards.domain import evidence
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.models import Rollout, RolloutVerdict
from deployments.plans.domain import descriptions
from deployments.rollouts.domain.step_observation import StepObservation
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import notifications, transitions
from deployments.rollouts.services.analysis import Analysis
from deployments.states import RolloutPhase
from portal.core import clock
from portal.core.errors import AlreadyDone

_PROMOTED: Final = (RolloutPhase.PROMOTING, RolloutPhase.WATCHING, RolloutPhase.COMPLETED)
# Without news the row is written this often, so that its age shows that it is current.
_AT_LEAST: Final = timedelta(seconds=5)


def store(snapshot: RolloutSnapshot, analysis: Analysis) -> None:
    rollout, at = snapshot.rollout, clock.now()
    last = rollout.evidence_at
    if not analysis.is_news and last is not None and at - last < _AT_LEAST:
        return
    is_changed = analysis.digest != rollout.evidence_hash
    fields = {
        "tests": analysis.tests,
        "evidence": [guard.to_json() for guard in analysis.guards],
        "evidence_hash": analysis.digest,
        "evidence_at": at,
        "observed": analysis.observed.to_json(),
        "phase_reason": analysis.readiness.message,
    }
    with transaction.atomic():
        if transitions.mark(rollout, fields) and is_changed:
            RolloutVerdict.objects.create(
                rollout=rollout,
                at=at,
                phase=rollout.phase,
                step_index=rollout.step_index,
                evidence_hash=analysis.digest,
                guards=fields["evidence"],
            )
        _notify(snapshot, analysis)
    rollout.tests, rollout.observed = fields["tests"], fields["observed"]
    rollout.evidence, rollout.evidence_hash = fields["evidence"], analysis.digest
    rollout.evidence_at = at


def _notify(snapshot: RolloutSnapshot, analysis: Analysis) -> None:
    """Notify people of what is new since the row was read."""
    rollout, observed = snapshot.rollout, analysis.observed
    before = StepObservation.from_json(rollout.observed)
    is_automatic = (
        snapshot.progress.is_promoted_automatically and analysis.readiness.is_auto_promotable
    )
    if observed.is_promotable and not before.is_promotable and not is_automatic:
        notifications.waits(
            snapshot, message=analysis.readiness.message, evidence_hash=analysis.digest
        )
    old_verdicts = {guard.guard: guard.verdict for guard in evidence.read(rollout.evidence)}
    for guard in analysis.guards:
        is_alarm = guard.guard in evidence.SPLITS and guard.verdict == Verdict.FAILED
        if is_alarm and old_verdicts.get(guard.guard) != guard.verdict:
            notifications.alarm(rollout, message=guard.message)
    if observed.stale_metrics and not before.stale_metrics:
        notifications.alarm(rollout, message=observed.stale_metrics)


def refuse_if_promoted(rollout: Rollout, *, shown: str) -> None:
    """Raise AlreadyDone, with who promoted and when, if the step with the evidence `shown` was promoted since."""
    decided_on = RolloutVerdict.objects.filter(rollout=rollout, evidence_hash=shown).first()
    if decided_on is None:
        return
    is_over = rollout.phase in _PROMOTED and decided_on.phase not in _PROMOTED
    if not is_over and rollout.step_index <= decided_on.step_index:
        return
    event = rollout.events.filter(at__gte=decided_on.at, message__contains="promoted").first()
    seconds = (clock.now() - (event.at if event else decided_on.at)).total_seconds()
    who = event.actor_name if event else ""
    message = descriptions.describe_already("promoted", who, seconds=seconds)
    raise AlreadyDone(message, code="rollout_moved")


def describe_changes(rollout: Rollout, *, shown: str, now: tuple[GuardResult, ...]) -> str:
    """Describe what changed since the evidence with the hash `shown`. Empty when that is not stored."""
    row = RolloutVerdict.objects.filter(rollout=rollout, evidence_hash=shown).first()
    return "" if row is None else evidence.describe_changes(evidence.read(row.guards), now)
