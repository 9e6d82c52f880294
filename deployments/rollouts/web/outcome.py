"""The cost of a rollout while it runs, and its outcome once it has stopped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.urls import reverse

from deployments.guards.domain import evidence
from deployments.guards.domain.evidence import GuardResult
from deployments.models import Revision, Rollout
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.selectors.rollouts import RolloutSummary
from deployments.rollouts.web.activity import sentence
from deployments.states import RolloutPhase
from fleet.telemetry.selectors import current
from fleet.telemetry.selectors.current import WorkloadKey
from portal.core import clock


@dataclass(frozen=True, slots=True)
class BothCost:
    """The cost of both sides in dollars an hour. None where nothing is allocated or a price is unknown."""

    stable: Decimal | None
    candidate: Decimal | None
    # What the additional revision will have cost by the earliest finish, from now on.
    until_finish: Decimal | None


@dataclass(frozen=True, slots=True)
class RolloutOutcome:
    """The outcome of a rollout. `tone` is "ok" or "bad". `next_url` is what one would do next, if anything."""

    tone: str
    title: str
    message: str
    guards: tuple[GuardResult, ...] = ()
    next_text: str = ""
    next_url: str = ""


def cost_of(rollout: Rollout, view: RolloutSummary) -> BothCost:
    stable, candidate = (
        _key(rollout, rollout.stable_revision),
        _key(rollout, rollout.candidate_revision),
    )
    beside = [_key(rollout, each) for each in (rollout.baseline_revision,) if each]
    allocated = current.count_workload_gpus([stable, candidate, *beside])
    hourly = allocated[candidate].usd_per_hour_amount if candidate in allocated else None
    for key in beside:
        # Gone once it is drained.
        of_baseline = allocated[key].usd_per_hour_amount if key in allocated else None
        hourly = hourly + of_baseline if hourly is not None and of_baseline is not None else hourly
    # Of the revision that runs because of the rollout: after promotion it is the old one.
    extra = allocated[stable].usd_per_hour_amount if stable in allocated else None
    extra = extra if view.is_watched else hourly
    until = None
    if extra is not None and view.earliest_finish_at is not None:
        left = max(timedelta(), view.earliest_finish_at - clock.now())
        until = extra * Decimal(int(left.total_seconds())) / 3600
    return BothCost(
        stable=allocated[stable].usd_per_hour_amount if stable in allocated else None,
        candidate=hourly,
        until_finish=until,
    )


def outcome_of(view: RolloutSummary) -> RolloutOutcome | None:
    """Describe the outcome of a rollout. None while it may still go either way."""
    phase = RolloutPhase(view.rollout.phase)
    if phase in (RolloutPhase.ABORTING, RolloutPhase.ABORTED):
        return _stopped(view, phase)
    if phase == RolloutPhase.COMPLETED:
        return _completed(view.rollout)
    return None


def alarm_of(view: RolloutSummary) -> str:
    """Describe a fault of the gateway or of who reads the numbers, not of the candidate. Empty without one."""
    return _split_alarm(view) or _stale_metrics_alarm(view)


def _stale_metrics_alarm(view: RolloutSummary) -> str:
    message = view.stale_metrics
    if not message or view.is_final:
        return ""
    return (
        f"{message[:1].upper()}{message[1:]}. The numbers below are from that time. Slipway neither "
        "promotes nor aborts on them."
    )


def _split_alarm(view: RolloutSummary) -> str:
    splits = (guard for guard in view.guards if guard.guard in evidence.SPLITS)
    wrong = next((guard for guard in splits if guard.verdict == evidence.Verdict.FAILED), None)
    if wrong is None:
        return ""
    does = "mirror" if wrong.guard == evidence.MIRROR else "split"
    return (
        f"The gateway does not {does} as requested: {wrong.message}. This is not chance. "
        "Promotion is blocked until it is fixed."
    )


def _stopped(view: RolloutSummary, phase: RolloutPhase) -> RolloutOutcome:
    rollout = view.rollout
    stable = rollout.stable_revision.version.label
    failed = evidence.stopping(view.guards)
    is_over = phase == RolloutPhase.ABORTED
    after = _after(view, stable, is_over=is_over)
    place = [rollout.deployment.team.slug, rollout.deployment.name]
    return RolloutOutcome(
        tone="bad",
        title="Aborted",
        message=f"{_reason_of(rollout)} {after}",
        guards=failed,
        next_text="Request another canary" if is_over else "",
        next_url=reverse("request-canary", args=place) if is_over else "",
    )


def _after(view: RolloutSummary, stable: str, *, is_over: bool) -> str:
    if view.is_shadow:
        ends = "is removed" if is_over else "is removed once mirroring has stopped"
        return f"{stable} serves all users, as before. The candidate {ends}."
    if is_over:
        return f"All requests go to {stable} again. The candidate is removed."
    return f"All requests go back to {stable}. The candidate is removed once it is drained."


def _completed(rollout: Rollout) -> RolloutOutcome:
    old, new = rollout.stable_revision, rollout.candidate_revision
    event = rollouts.events_of(rollout).filter(kind="alias").first()
    moved = f" {sentence(event.message)}" if event else ""
    message = f"{new.version.label} is stable and serves all requests. r{old.number} is removed."
    place = [rollout.deployment.team.slug, rollout.deployment.name]
    is_still = rollout.deployment.stable_revision_id == new.pk
    return RolloutOutcome(
        tone="ok",
        title="Completed",
        message=message + moved,
        next_text=f"Roll back to r{old.number}" if is_still else "",
        next_url=f"{reverse('request-roll-back', args=place)}?revision={old.number}"
        if is_still
        else "",
    )


def _reason_of(rollout: Rollout) -> str:
    """Return the reason given when the rollout began to stop, and who gave it."""
    event = rollouts.events_of(rollout).filter(kind=RolloutPhase.ABORTING).order_by("id").first()
    if event is None:
        return sentence(rollout.phase_reason)
    who = f"by {event.actor_name}" if event.actor_name else "automatically"
    head, colon, rest = event.message.partition(": ")
    return sentence(f"{head} {who}{colon}{rest}")


def _key(rollout: Rollout, revision: Revision) -> WorkloadKey:
    deployment = rollout.deployment
    return WorkloadKey(deployment.cluster_id, deployment.namespace, revision.workload_name)
