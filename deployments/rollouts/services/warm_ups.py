"""The warm-up of the candidate's pods: their first requests are slow, whatever the version.

Each pod has its own, from its first request on; so pods that are added at a higher weight have one
too. Errors of a pod that warms up count, its times, queue and busy time do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from deployments.guards.domain.counters import Sums
from deployments.models import Revision
from deployments.plans.domain import warm_up
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from fleet.telemetry.selectors import warm_ups
from fleet.telemetry.selectors.current import WorkloadKey
from portal.core import clock

Ends = Mapping[int, datetime]


def advance(snapshot: RolloutSnapshot, known: Ends) -> dict[int, datetime]:
    """Return when each pod of the candidate and of its baseline is warm: `known`, and pods that received their
    first request since.
    """
    seconds, started_at = snapshot.plan.warmup_seconds, snapshot.progress.step_started_at
    if seconds is None:
        seconds = warm_up.DEFAULT_WARMUP_SECONDS
    if not seconds or started_at is None:
        return dict(known)
    rollout = snapshot.rollout
    new = [each for each in (rollout.candidate_revision, rollout.baseline_revision) if each]
    first = {
        pod_id: at
        for revision in new
        for pod_id, at in warm_ups.first_requests(
            _workload(revision), since=started_at, known=known
        ).items()
    }
    wait = timedelta(seconds=seconds)
    return {**known, **{pod_id: at + wait for pod_id, at in first.items()}}


def without(sums: Sums, revision: Revision, since: datetime, ends: Ends) -> Sums:
    """Return the reading without the times of pods that were warming up."""
    if all(end < since for end in ends.values()):
        return sums
    cold = warm_ups.counts_until(_workload(revision), since=since, until=ends)
    counted = cold.counters
    return replace(
        sums,
        inferences=max(0, sums.inferences - counted.inference_count),
        duration_us=max(0, sums.duration_us - counted.request_duration_us),
        queue_us=max(0, sums.queue_us - counted.queue_duration_us),
        busy_ms=max(0, sums.busy_ms - cold.busy_ms),
        observed_ms=max(0, sums.observed_ms - cold.observed_ms),
        tokens=max(0, sums.tokens - counted.generation_tokens),
        first_tokens=max(0, sums.first_tokens - counted.first_tokens),
        first_token_us=max(0, sums.first_token_us - counted.first_token_us),
        later_tokens=max(0, sums.later_tokens - counted.later_tokens),
        later_token_us=max(0, sums.later_token_us - counted.later_token_us),
        untimed=min(sums.success, sums.untimed + counted.request_success),
    )


def until(ends: Ends) -> datetime | None:
    """Return when the last pod that warms up now is warm. None if no pod warms up."""
    last = max(ends.values(), default=None)
    return last if last is not None and last > clock.now() else None


def describe(until: datetime | None) -> str:
    """Describe until when pods warm up. Empty when none does."""
    return "" if until is None else f"warming up, not judged until {until:%H:%M:%S} UTC"


def _workload(revision: Revision) -> WorkloadKey:
    deployment = revision.deployment
    return WorkloadKey(deployment.cluster_id, deployment.namespace, revision.workload_name)
