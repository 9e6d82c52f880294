"""Gather the evidence of a running step and write it beside the rollout."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from deployments.domain import evidence, rollouts
from deployments.domain.evidence import Counts, Guard, Verdict
from deployments.domain.rollouts import Readiness, RolloutPlan
from deployments.models import Revision, Rollout
from deployments.services import rollout_states
from fleet.selectors import telemetry
from portal.core import clock

# How often pods are read, and a little more.
_READ_EVERY: Final = timedelta(seconds=6)


@dataclass(frozen=True, slots=True)
class Analysis:
    guards: tuple[Guard, ...]
    readiness: Readiness
    digest: str
    observed: dict[str, Any]


def analyse(rollout: Rollout, plan: RolloutPlan) -> Analysis:
    """Counts since the present weight was first seen at the gateway; None of it is guessed."""
    at = clock.now()
    since = plan.step_started_at
    stable = _counts(rollout, rollout.stable_revision, since)
    candidate = _counts(rollout, rollout.candidate_revision, since)
    guards = evidence.judge(
        weight=plan.step.weight,
        min_requests=plan.step.min_requests,
        stable=stable,
        candidate=candidate,
    )
    readiness = rollouts.promotable(
        plan,
        candidate_requests=candidate.requests,
        failing=_named(guards, Verdict.FAILED),
        undecided=_named(guards, Verdict.NOT_ENOUGH),
        now=at,
    )
    digest = evidence.digest(
        rollout_id=rollout.pk, step_index=plan.step_index, phase=plan.phase, guards=guards
    )
    observed = {
        "weight": rollout.deployment.observed_weight,
        "stable_requests": stable.requests,
        "candidate_requests": candidate.requests,
        "share": _share(plan.step.weight, stable, candidate),
        "is_promotable": readiness.is_promotable,
        "why": readiness.words,
    }
    return Analysis(guards, readiness, digest, observed)


def store(rollout: Rollout, found: Analysis) -> None:
    fields = {
        "evidence": [guard.to_json() for guard in found.guards],
        "evidence_hash": found.digest,
        "evidence_at": clock.now(),
        "observed": found.observed,
        "phase_reason": found.readiness.words,
    }
    rollout_states.mark(rollout, fields)
    rollout.evidence_hash, rollout.observed = found.digest, found.observed


def _counts(rollout: Rollout, revision: Revision, since: datetime | None) -> Counts:
    """Not known until a reading after the step began has arrived."""
    if since is None or clock.now() < since + _READ_EVERY:
        return Counts()
    # The reading that the counts start from may be one interval older than asked for; from here
    # on it is not older than the step, so requests of the step before are not counted.
    since = since + _READ_EVERY
    deployment = rollout.deployment
    name = f"{deployment.name}-r{revision.number}"
    cluster_id, namespace = deployment.cluster_id, deployment.namespace
    seen = telemetry.counts_since(
        cluster_id=cluster_id, namespace=namespace, name=name, since=since
    )
    if seen.latest_at is None or seen.latest_at < since:
        return Counts()
    seconds = max(60, int((clock.now() - since).total_seconds()))
    stats = telemetry.stats(
        cluster_id=cluster_id, namespace=namespace, names=[name], seconds=seconds
    )
    return Counts(
        success=seen.success,
        failure=seen.failure,
        mean_latency_ms=stats.mean_latency_ms if stats else None,
    )


def _share(weight: int, stable: Counts, candidate: Counts) -> dict[str, float]:
    mine, others = candidate.requests, stable.requests
    if mine is None or others is None or mine + others == 0:
        return {}
    band = evidence.band(weight=weight, n=mine + others)
    return {"observed": mine / (mine + others), "low": band.low, "high": band.high}


def _named(guards: tuple[Guard, ...], verdict: Verdict) -> tuple[str, ...]:
    return tuple(guard.guard.lower() for guard in guards if guard.verdict == verdict)
