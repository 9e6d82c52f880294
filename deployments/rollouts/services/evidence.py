"""Write evidence beside the rollout: what the page shows, what a click binds to, what has turned."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction

from deployments.guards.domain import evidence
from deployments.guards.domain.evidence import Guard, Verdict
from deployments.models import Rollout, RolloutVerdict
from deployments.rollouts.services import notifications, transitions
from deployments.rollouts.services.analysis import Analysis
from portal.core import clock

# Without news the row is written this often, so that its age shows that someone looked.
_AT_LEAST: Final = timedelta(seconds=5)


def store(rollout: Rollout, found: Analysis) -> None:
    at = clock.now()
    last = rollout.evidence_at
    if not found.is_news and last is not None and at - last < _AT_LEAST:
        return
    is_turned = found.digest != rollout.evidence_hash
    fields = {
        "tests": found.tests,
        "evidence": [guard.to_json() for guard in found.guards],
        "evidence_hash": found.digest,
        "evidence_at": at,
        "observed": found.observed,
        "phase_reason": found.readiness.words,
    }
    with transaction.atomic():
        if transitions.mark(rollout, fields) and is_turned:
            RolloutVerdict.objects.create(
                rollout=rollout,
                at=at,
                phase=rollout.phase,
                step_index=rollout.step_index,
                evidence_hash=found.digest,
                guards=fields["evidence"],
            )
        _tell(rollout, found)
        _tell_silence(rollout, found)
    rollout.tests, rollout.evidence_at = found.tests, at
    rollout.evidence_hash, rollout.observed = found.digest, found.observed
    rollout.evidence = [guard.to_json() for guard in found.guards]


def _tell(rollout: Rollout, found: Analysis) -> None:
    was_promotable = bool(rollout.observed.get("is_promotable"))
    if found.readiness.is_promotable and not was_promotable:
        notifications.waits(rollout, words=found.readiness.words, evidence_hash=found.digest)
    before = {guard["guard"]: guard["verdict"] for guard in rollout.evidence}
    for guard in found.guards:
        is_alarm = guard.guard in evidence.SPLITS and guard.verdict == Verdict.FAILED
        if is_alarm and before.get(guard.guard) != guard.verdict:
            notifications.alarm(rollout, words=guard.words)


def _tell_silence(rollout: Rollout, found: Analysis) -> None:
    words = found.observed.get("silence", "")
    if words and not rollout.observed.get("silence"):
        notifications.alarm(rollout, words=words)


def changed_words(rollout: Rollout, *, shown: str, now: tuple[Guard, ...]) -> str:
    """What has turned since someone saw the evidence with the hash `shown`; empty when not known."""
    row = RolloutVerdict.objects.filter(rollout=rollout, evidence_hash=shown).first()
    if row is None:
        return ""
    return evidence.changed_words([Guard(**guard) for guard in row.guards], now)
