"""Record what stable shows before it stops getting requests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from deployments.guards.domain import reference
from deployments.guards.domain.families.percentiles import Measure
from deployments.guards.domain.histograms import Counts
from deployments.rollouts.selectors import prometheus
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import counter_readings, gpu_facts
from fleet.telemetry.selectors import blocks
from portal.core import clock

_PERIOD: Final = timedelta(hours=1)
_BLOCK_SECONDS: Final = 300


def record(snapshot: RolloutSnapshot) -> dict[str, Any]:
    """Record the last hour of the stable revision by its counters, and its histograms of this step."""
    rollout, at = snapshot.rollout, clock.now()
    observed = blocks.blocks(
        cluster_id=rollout.deployment.cluster_id,
        namespace=rollout.deployment.namespace,
        name=rollout.compared_revision.workload_name,
        since=at - _PERIOD,
        until=at,
        seconds=_BLOCK_SECONDS,
    )
    facts = gpu_facts.facts_of(rollout, rollout.compared_revision, snapshot.plan.guards.limits)
    recorded = reference.build_reference(
        [counter_readings.sums_of(counts) for counts in observed],
        facts,
        histograms=_histograms(snapshot),
        until=at,
    )
    return recorded.to_json()


def _histograms(snapshot: RolloutSnapshot) -> dict[Measure, Counts]:
    read = prometheus.state_at(snapshot).histograms
    return {measure: state.tests.stable for measure, state in read.items()}
