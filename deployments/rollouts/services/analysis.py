"""Gather the evidence of a running step: new readings go through the tests, verdicts come out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from deployments.guards.domain import counter_verdicts, evidence, stale_metrics
from deployments.guards.domain.counter_verdicts import Judging
from deployments.guards.domain.evidence import Guard, Verdict
from deployments.guards.domain.sequential_tests import Side, StepTests
from deployments.models import Rollout
from deployments.plans.domain import rollout_plan
from deployments.quality.selectors import quality
from deployments.rollouts.domain.observation import RolloutPlan
from deployments.rollouts.domain.readiness import Readiness, promotable
from deployments.rollouts.selectors import prometheus
from deployments.rollouts.services import counter_readings, gpu_facts
from deployments.rollouts.services.counter_readings import Read
from portal.core import clock

# A few readings that did not come: what is known is no longer what is.
_STALE: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Analysis:
    """`tests` is what to store; `is_news` whether a reading or a verdict has changed it."""

    guards: tuple[Guard, ...]
    readiness: Readiness
    digest: str
    observed: dict[str, Any]
    tests: dict[str, Any]
    is_news: bool

    @property
    def failing_words(self) -> str:
        found = evidence.stopping(self.guards)
        return "; ".join(f"{guard.guard.lower()}: {guard.words}" for guard in found)


def analyse(rollout: Rollout, plan: RolloutPlan) -> Analysis:
    """Counts since the present weight was first seen at the gateway; None of it is guessed."""
    if plan.step.weight == 0:
        return _in_the_dark(rollout, plan)
    at = clock.now()
    read = counter_readings.read(rollout, plan)
    unknown = _unknown(read, at)
    total = read.tests.total
    stable = None if read.stable_at is None else total.stable.requests
    candidate = None if read.candidate_at is None else total.candidate.requests
    guards = (
        _known_split_of(plan, read, unknown),
        *_judge(rollout, plan, read.tests, unknown),
        *prometheus.guards_for(rollout=rollout),
        *quality.guards_for(rollout=rollout),
    )
    readiness = promotable(
        plan,
        candidate_requests=None if unknown else candidate,
        failing=evidence.named(guards, Verdict.FAILED),
        undecided=evidence.named(guards, Verdict.NOT_ENOUGH),
        now=at,
        unknown=unknown,
    )
    observed = {
        "weight": rollout.deployment.observed_weight,
        "mirror": rollout.deployment.observed_mirror,
        "stable_requests": stable,
        "candidate_requests": candidate,
        "share": _share(plan, read.tests.split),
        "is_promotable": readiness.is_promotable,
        "why": readiness.words,
        "silence": _silence(plan, read, unknown, at),
    }
    return _made(
        rollout,
        plan,
        guards,
        readiness,
        observed,
        counter_readings.to_json(plan, read),
        is_new=read.is_new,
    )


def _in_the_dark(rollout: Rollout, plan: RolloutPlan) -> Analysis:
    """Blue/green: there are no requests to count, only what was checked before any."""
    checked = quality.before_traffic(rollout=rollout)
    guard = Guard(
        guard="Answers before traffic",
        stable="",
        candidate="",
        limit="as saved",
        n=len(checked.rows),
        verdict=checked.verdict,
        words=checked.words,
        source="golden requests",
    )
    readiness = promotable(
        plan,
        candidate_requests=None,
        failing=evidence.named((guard,), Verdict.FAILED),
        undecided=(),
        now=clock.now(),
    )
    observed = {
        "weight": rollout.deployment.observed_weight,
        "is_promotable": readiness.is_promotable,
        "why": readiness.words,
    }
    return _made(rollout, plan, (guard,), readiness, observed, {}, is_new=False)


def _made(
    rollout: Rollout,
    plan: RolloutPlan,
    guards: tuple[Guard, ...],
    readiness: Readiness,
    observed: dict[str, Any],
    tests: dict[str, Any],
    *,
    is_new: bool,
) -> Analysis:
    digest = evidence.digest(
        rollout_id=rollout.pk, step_index=plan.step_index, phase=plan.phase, guards=guards
    )
    was_promotable = bool(rollout.observed.get("is_promotable"))
    is_turned = digest != rollout.evidence_hash or readiness.is_promotable != was_promotable
    return Analysis(guards, readiness, digest, observed, tests, is_news=is_new or is_turned)


def _judge(
    rollout: Rollout, plan: RolloutPlan, tests: StepTests, unknown: str
) -> tuple[Guard, ...]:
    settings = rollout_plan.from_json(rollout.plan)
    judging = Judging(
        tests=tests,
        alpha=counter_verdicts.alpha_of_one_test(
            settings.analysis.alpha, tests=settings.tests, steps=len(plan.steps)
        ),
        is_strict=settings.analysis.is_strict,
        min_requests=plan.step.min_requests,
        stable=gpu_facts.facts_of(rollout, rollout.stable_revision, settings.guards),
        candidate=gpu_facts.facts_of(rollout, rollout.candidate_revision, settings.guards),
        unknown=unknown,
        is_mirrored=plan.is_shadow,
    )
    return counter_verdicts.judge(settings.guards, judging)


def _unknown(read: Read, at: datetime) -> str:
    """Why the numbers say nothing now. Missing ones neither promote nor abort."""
    if read.candidate_at is None:
        return "the candidate's requests are not known"
    for name, latest in (("candidate", read.candidate_at), ("stable revision", read.stable_at)):
        if latest is not None and at - latest > _STALE:
            return f"no metrics from the {name} since {latest:%H:%M:%S} UTC"
    return ""


def _silence(plan: RolloutPlan, read: Read, unknown: str, at: datetime) -> str:
    """What people must be told of numbers that do not come any more; empty when they come."""
    if unknown:
        return unknown if read.candidate_at is not None else ""
    total = read.tests.total
    return stale_metrics.quiet_words(
        requests=total.stable.requests + total.candidate.requests,
        since=plan.step_started_at or at,
        busy_at=read.busy_at,
        now=at,
    )


def _known_split_of(plan: RolloutPlan, read: Read, unknown: str) -> Guard:
    """A split that was right when it was last read is not known to be right now."""
    found = _split_of(plan, read)
    if unknown and found.verdict == Verdict.PASSED:
        return replace(found, verdict=Verdict.NOT_ENOUGH, words=unknown)
    return found


def _split_of(plan: RolloutPlan, read: Read) -> Guard:
    split = read.tests.split
    stable = split.stable.requests if read.is_known else None
    candidate = split.candidate.requests if read.is_known else None
    if plan.is_shadow:
        return evidence.judge_mirror(percent=plan.step.weight, stable=stable, candidate=candidate)
    return evidence.judge_share(weight=plan.step.weight, stable=stable, candidate=candidate)


def _share(plan: RolloutPlan, split: Side) -> dict[str, float]:
    """Of a shadow: copies for each request that stable answered."""
    stable, candidate = split.stable.requests, split.candidate.requests
    total = stable if plan.is_shadow else stable + candidate
    if total == 0:
        return {}
    if plan.is_shadow:
        band = evidence.mirror_band(percent=plan.step.weight, n=total)
    else:
        band = evidence.band(weight=plan.step.weight, n=total)
    return {"observed": candidate / total, "low": band.low, "high": band.high}
