"""Gather the evidence of a running step: new readings go through the tests, verdicts come out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from deployments.domain import analysis, analysis_verdicts, evidence, rollout_plans, rollouts
from deployments.domain.analysis import Side, StepTests
from deployments.domain.analysis_sums import Sums
from deployments.domain.analysis_verdicts import Judging
from deployments.domain.evidence import Guard, Verdict
from deployments.domain.rollouts import Readiness, RolloutPlan
from deployments.models import Revision, Rollout
from deployments.selectors import quality
from deployments.services import rollout_facts
from fleet.selectors import telemetry
from portal.core import clock

# A few readings that did not come: what is known is no longer what is.
_STALE: Final = timedelta(seconds=30)
_JUST_AFTER: Final = timedelta(microseconds=1)


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


@dataclass(frozen=True, slots=True)
class _Read:
    """`seen` are the latest readings that ever came of each side at this step."""

    tests: StepTests
    until: datetime | None
    stable_at: datetime | None
    candidate_at: datetime | None
    is_new: bool

    @property
    def is_known(self) -> bool:
        return self.stable_at is not None and self.candidate_at is not None


def analyse(rollout: Rollout, plan: RolloutPlan) -> Analysis:
    """Counts since the present weight was first seen at the gateway; None of it is guessed."""
    if plan.step.weight == 0:
        return _in_the_dark(rollout, plan)
    at = clock.now()
    read = _read(rollout, plan)
    unknown = _unknown(read, at)
    total, split = read.tests.total, read.tests.split
    stable = None if read.stable_at is None else total.stable.requests
    candidate = None if read.candidate_at is None else total.candidate.requests
    guards = (
        evidence.judge_share(
            weight=plan.step.weight,
            stable=split.stable.requests if read.is_known else None,
            candidate=split.candidate.requests if read.is_known else None,
        ),
        *_judge(rollout, plan, read.tests, unknown),
        *quality.guards_for(rollout=rollout),
    )
    readiness = rollouts.promotable(
        plan,
        candidate_requests=None if unknown else candidate,
        failing=evidence.named(guards, Verdict.FAILED),
        undecided=evidence.named(guards, Verdict.NOT_ENOUGH),
        now=at,
        unknown=unknown,
    )
    observed = {
        "weight": rollout.deployment.observed_weight,
        "stable_requests": stable,
        "candidate_requests": candidate,
        "share": _share(plan.step.weight, split.stable.requests, split.candidate.requests),
        "is_promotable": readiness.is_promotable,
        "why": readiness.words,
    }
    return _made(
        rollout, plan, guards, readiness, observed, _to_json(plan, read), is_new=read.is_new
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
    readiness = rollouts.promotable(
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
    settings = rollout_plans.from_json(rollout.plan)
    judging = Judging(
        tests=tests,
        alpha=analysis_verdicts.alpha_of_one_test(
            settings.analysis.alpha, tests=settings.tests, steps=len(plan.steps)
        ),
        is_strict=settings.analysis.is_strict,
        min_requests=plan.step.min_requests,
        stable=rollout_facts.facts_of(rollout, rollout.stable_revision, settings.guards),
        candidate=rollout_facts.facts_of(rollout, rollout.candidate_revision, settings.guards),
        unknown=unknown,
    )
    return analysis_verdicts.judge(settings.guards, judging)


def _read(rollout: Rollout, plan: RolloutPlan) -> _Read:
    """The tests with what was counted since they were last stored."""
    stored, started_at = rollout.tests, plan.step_started_at
    nothing = _Read(StepTests(), None, None, None, is_new=False)
    if started_at is None:
        return nothing
    before = nothing
    if stored.get("step") == _step_key(plan):
        before = _Read(
            tests=analysis.from_json(stored),
            until=_time(stored["until"]),
            stable_at=_time(stored["stable_at"]),
            candidate_at=_time(stored["candidate_at"]),
            is_new=False,
        )
    since = started_at if before.until is None else before.until + _JUST_AFTER
    return _advance(rollout, before, since, started_at=started_at)


def _advance(rollout: Rollout, before: _Read, since: datetime, *, started_at: datetime) -> _Read:
    stable = _seen(rollout, rollout.stable_revision, since)
    candidate = _seen(rollout, rollout.candidate_revision, since)
    new = [seen.latest_at for seen in (stable, candidate) if seen.latest_at is not None]
    if not new:
        return before
    limits = rollout_plans.from_json(rollout.plan).guards
    tests = analysis.advance(
        before.tests,
        Side(_sums(stable), _sums(candidate)),
        limits=limits,
        stable=rollout_facts.facts_of(rollout, rollout.stable_revision, limits),
        candidate=rollout_facts.facts_of(rollout, rollout.candidate_revision, limits),
        is_within_step=all(
            seen.begins_at is None or seen.begins_at >= started_at for seen in (stable, candidate)
        ),
    )
    return replace(
        before,
        tests=tests,
        until=max(new),
        stable_at=stable.latest_at or before.stable_at,
        candidate_at=candidate.latest_at or before.candidate_at,
        is_new=True,
    )


def _seen(rollout: Rollout, revision: Revision, since: datetime) -> telemetry.RequestCounts:
    deployment = rollout.deployment
    return telemetry.counts_since(
        cluster_id=deployment.cluster_id,
        namespace=deployment.namespace,
        name=f"{deployment.name}-r{revision.number}",
        since=since,
    )


def _sums(seen: telemetry.RequestCounts) -> Sums:
    return Sums(
        success=seen.success,
        failure=seen.failure,
        inferences=seen.inferences,
        duration_us=seen.duration_us,
        queue_us=seen.queue_us,
        busy_ms=seen.busy_ms,
        observed_ms=seen.observed_ms,
    )


def _unknown(read: _Read, at: datetime) -> str:
    """Why the numbers say nothing now. Missing ones neither promote nor abort."""
    if read.candidate_at is None:
        return "the candidate's requests are not known"
    for name, latest in (("candidate", read.candidate_at), ("stable revision", read.stable_at)):
        if latest is not None and at - latest > _STALE:
            return f"no reading of the {name} since {latest:%H:%M:%S} UTC"
    return ""


def _share(weight: int, stable: int, candidate: int) -> dict[str, float]:
    if candidate + stable == 0:
        return {}
    band = evidence.band(weight=weight, n=candidate + stable)
    return {"observed": candidate / (candidate + stable), "low": band.low, "high": band.high}


def _to_json(plan: RolloutPlan, read: _Read) -> dict[str, Any]:
    times = {"until": read.until, "stable_at": read.stable_at, "candidate_at": read.candidate_at}
    return {
        "step": _step_key(plan),
        **{name: at.isoformat() if at else None for name, at in times.items()},
        **read.tests.to_json(),
    }


def _step_key(plan: RolloutPlan) -> str:
    """A step that begins again, after a pause before traffic, counts anew."""
    started_at = plan.step_started_at
    return f"{plan.step_index} {started_at.isoformat() if started_at else ''}"


def _time(stored: str | None) -> datetime | None:
    return None if stored is None else datetime.fromisoformat(stored)
