"""Gather the evidence of a running step: new readings go through the tests, verdicts come out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from deployments.guards.domain import counter_verdicts, evidence, stale_metrics, step_verdicts
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.families.protocol import Reads
from deployments.guards.domain.load import PodLoad
from deployments.guards.domain.reference import Reference
from deployments.guards.domain.step_tests import Side
from deployments.guards.domain.step_verdicts import PlanTerms, StepReadings
from deployments.quality.selectors import quality
from deployments.rollouts.domain.observation import RolloutProgress
from deployments.rollouts.domain.readiness import Readiness, readiness_of
from deployments.rollouts.domain.step_observation import ObservedSplit, StepObservation
from deployments.rollouts.selectors import pods, prometheus
from deployments.rollouts.selectors.pods import STALE, RolloutPods
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import counter_readings, gpu_facts, warm_ups
from deployments.rollouts.services.counter_readings import CounterReadings
from portal.core import clock


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of a step. `tests` is what to store. `is_news`: there is a new reading, or a verdict changed."""

    guards: tuple[GuardResult, ...]
    readiness: Readiness
    digest: str
    observed: StepObservation
    tests: dict[str, Any]
    is_news: bool

    @property
    def failure(self) -> str:
        """The reason for which the rollout must be aborted. Empty when no guard says so."""
        failing = evidence.stopping(self.guards)
        return "; ".join(f"{guard.guard.lower()}: {guard.message}" for guard in failing)


def analyse(snapshot: RolloutSnapshot) -> Analysis:
    """Analyse a step by counts since the gateway first showed its weight."""
    rollout, progress = snapshot.rollout, snapshot.progress
    if progress.weight == 0:
        return _analyse_without_traffic(snapshot)
    at = clock.now()
    serving = pods.read(snapshot)
    counts = counter_readings.read(snapshot, serving.load)
    uncovered = _describe_unread_pods(serving)
    unknown = _unknown(progress, counts, at) or uncovered
    total = counts.tests.total
    stable = None if counts.stable_at is None else total.stable.requests
    candidate = None if counts.candidate_at is None else total.candidate.requests
    guards = (
        *_judge_split(progress, counts, unknown, is_covered=not uncovered),
        *_judge_received(snapshot, counts, unknown),
        *_judge(snapshot, counts, unknown, serving.load),
        *quality.guards_for(rollout=rollout, limits=snapshot.plan.quality_limits),
    )
    readiness = readiness_of(
        progress,
        candidate_requests=None if unknown else candidate,
        failing=evidence.list_names(guards, Verdict.FAILED),
        undecided=evidence.list_names(guards, Verdict.NOT_ENOUGH),
        unjudged=evidence.describe_unjudged(guards),
        now=at,
        unknown=unknown,
        warming=warm_ups.describe(warm_ups.until(counts.warm_at)),
    )
    observed = StepObservation(
        weight=rollout.deployment.observed_weight,
        mirror=rollout.deployment.observed_mirror,
        stable_requests=stable,
        candidate_requests=candidate,
        split=_observed_split(progress, counts.tests.split),
        is_promotable=readiness.is_promotable,
        reason=readiness.message,
        stale_metrics=_describe_stale_metrics(progress, counts, unknown, at),
        warming=warm_ups.describe(warm_ups.until(counts.warm_at)),
        was_promotable=StepObservation.from_json(rollout.observed).was_promotable,
    )
    tests = counts.to_json(progress.step_key)
    return _analysis(snapshot, guards, readiness, observed, tests, is_new=counts.is_new)


def _analyse_without_traffic(snapshot: RolloutSnapshot) -> Analysis:
    """Analyse a step of blue/green: there are no requests to count, only what was checked before any."""
    rollout = snapshot.rollout
    checked = quality.before_traffic(rollout=rollout)
    guard = GuardResult(
        guard="Answers before traffic",
        stable="",
        candidate="",
        limit="as saved",
        n=len(checked.rows),
        verdict=checked.verdict,
        message=checked.message,
        source="golden requests",
    )
    readiness = readiness_of(
        snapshot.progress,
        candidate_requests=None,
        failing=evidence.list_names((guard,), Verdict.FAILED),
        undecided=(),
        now=clock.now(),
    )
    observed = StepObservation(
        weight=rollout.deployment.observed_weight,
        is_promotable=readiness.is_promotable,
        reason=readiness.message,
    )
    return _analysis(snapshot, (guard,), readiness, observed, {}, is_new=False)


def _analysis(
    snapshot: RolloutSnapshot,
    guards: tuple[GuardResult, ...],
    readiness: Readiness,
    observed: StepObservation,
    tests: dict[str, Any],
    *,
    is_new: bool,
) -> Analysis:
    rollout, progress = snapshot.rollout, snapshot.progress
    digest = evidence.digest(
        rollout_id=rollout.pk, step_index=progress.step_index, phase=progress.phase, guards=guards
    )
    before = StepObservation.from_json(rollout.observed)
    is_changed = digest != rollout.evidence_hash or readiness.is_promotable != before.is_promotable
    return Analysis(guards, readiness, digest, observed, tests, is_news=is_new or is_changed)


def _judge(
    snapshot: RolloutSnapshot, counts: CounterReadings, unknown: str, load: PodLoad | None
) -> tuple[GuardResult, ...]:
    """Judge the guards of the plan, each by what its source says now."""
    rollout, plan, progress = snapshot.rollout, snapshot.plan, snapshot.progress
    guards, state = plan.guards, prometheus.read(snapshot)
    terms = PlanTerms(
        alpha=counter_verdicts.alpha_of_one_test(plan.analysis.alpha, tests=guards.tests),
        is_strict=plan.analysis.is_strict,
        min_requests=progress.step.min_requests,
        is_mirrored=progress.is_shadow,
        load=load,
        recorded=Reference.from_json(rollout.reference) if progress.is_alone else None,
    )
    readings = StepReadings(
        counters=counts.tests,
        stable=gpu_facts.facts_of(rollout, rollout.compared_revision, guards.server_limits),
        candidate=gpu_facts.facts_of(rollout, rollout.candidate_revision, guards.server_limits),
        warming=warm_ups.describe(warm_ups.until(counts.warm_at)),
        state=state,
        unknown={Reads.SERVER: unknown, **prometheus.describe_unknown(state)},
        unknown_histograms=prometheus.unknown_histograms(guards, state),
        unknown_queries=prometheus.unknown_queries(guards, state),
    )
    return step_verdicts.judge(guards, readings, terms)


def _unknown(progress: RolloutProgress, counts: CounterReadings, at: datetime) -> str:
    """Say why there are no current numbers. Empty while there are. Missing ones neither promote nor abort."""
    if counts.candidate_at is None:
        return "the candidate's requests are not known"
    compared = "baseline" if progress.plan.has_baseline else "stable revision"
    sides = [("candidate", counts.candidate_at), (compared, counts.stable_at)]
    # A stable revision without requests may have been scaled to zero.
    for name, latest in sides[:1] if progress.is_alone else sides:
        if latest is not None and at - latest > STALE:
            return f"no metrics from the {name} since {latest:%H:%M:%S} UTC"
    return ""


def _describe_unread_pods(serving: RolloutPods) -> str:
    """Describe how many pods were read, for example "3 of 5 pods of the candidate were read in the last 30 s".
    Empty when all were.
    """
    sides = (
        ("candidate", serving.candidate),
        ("baseline", serving.baseline),
        ("stable revision", serving.stable),
    )
    for side, covered in sides:
        if covered is not None and not covered.is_complete:
            seconds = round(STALE.total_seconds())
            of_all = f"{covered.read} of {covered.ready} pods of the {side}"
            return f"{of_all} were read in the last {seconds} s"
    return ""


def _describe_stale_metrics(
    progress: RolloutProgress, counts: CounterReadings, unknown: str, at: datetime
) -> str:
    """Describe for people since when numbers no longer arrive. Empty while they do."""
    if unknown:
        return unknown if counts.candidate_at is not None else ""
    total = counts.tests.total
    return stale_metrics.describe_no_requests(
        requests=total.stable.requests + total.candidate.requests,
        since=progress.step_started_at or at,
        busy_at=counts.busy_at,
        now=at,
    )


def _judge_split(
    progress: RolloutProgress, counts: CounterReadings, unknown: str, *, is_covered: bool
) -> tuple[GuardResult, ...]:
    """Judge the split. One that was right at the last reading is not known to be right now. Without all pods it
    may only seem to be wrong. Once the candidate is stable there is none.
    """
    if progress.is_watched:
        return ()
    split = counts.tests.split
    is_known = counts.is_known or (progress.is_alone and counts.candidate_at is not None)
    stable = split.stable.requests if is_known else None
    candidate = split.candidate.requests if is_known else None
    weight = progress.step.weight
    if progress.is_shadow:
        result = evidence.judge_mirror(percent=weight, stable=stable, candidate=candidate)
    else:
        result = evidence.judge_split(weight=weight, stable=stable, candidate=candidate)
    if unknown and (result.verdict == Verdict.PASSED or not is_covered):
        result = replace(result, verdict=Verdict.NOT_ENOUGH, message=unknown)
    return (result,)


def _judge_received(
    snapshot: RolloutSnapshot, counts: CounterReadings, unknown: str
) -> tuple[GuardResult, ...]:
    """Judge whether requests are missing that the gateway's own counts say it sent. Empty where none is missing."""
    progress, split = snapshot.progress, counts.tests.split
    if unknown or progress.is_shadow or progress.is_watched:
        return ()
    counted = (split.stable.requests, split.candidate.requests)
    sent = prometheus.count_sent(snapshot)
    result = evidence.judge_received(
        weight=progress.step.weight,
        # The gateway is read of the pods that are compared.
        sent_weight=50 if progress.baseline_weight else progress.step.weight,
        counted=counted,
        sent=sent,
    )
    return () if result is None else (result,)


def _observed_split(progress: RolloutProgress, split: Side) -> ObservedSplit | None:
    stable, candidate = split.stable.requests, split.candidate.requests
    total = stable if progress.is_shadow else stable + candidate
    if total == 0 or progress.is_watched:
        return None
    if progress.is_shadow:
        band = evidence.mirror_band(percent=progress.step.weight, n=total)
    else:
        band = evidence.band(weight=progress.step.weight, n=total)
    return ObservedSplit(observed=candidate / total, low=band.low, high=band.high)
