"""Read the gateway and the cluster's Prometheus for the guards of running rollouts, every few seconds.

A task of its own, so that a slow or absent one delays no rollout: guards on the counters of servers
continue, and those that need it have not enough data.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, Final

from deployments.guards.domain import histogram_state, prometheus_state, promql, reference
from deployments.guards.domain.betting import blocks
from deployments.guards.domain.families.percentiles import Measure
from deployments.guards.domain.guard_set import PlanGuards
from deployments.guards.domain.histogram_state import Reading
from deployments.guards.domain.load import LoadDifference
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.guards.domain.prometheus_state import State
from deployments.guards.domain.promql import QueryTarget, Sides
from deployments.guards.domain.reference import Reference
from deployments.models import PrometheusReading, Revision, Rollout
from deployments.plans.selectors import plans
from deployments.rollouts.selectors import pods, snapshots
from deployments.rollouts.selectors import prometheus as readings
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from deployments.rollouts.services import counter_readings, gateway_readings
from deployments.states import JUDGED_PHASES, ROLLOUT, RolloutPhase
from fleet.clusters.services import prometheus
from portal.core import clock, leases
from portal.core.leases import Lease
from portal.core.wakeups import wake

_IDLE_SECONDS: Final = 3.0
# Some forty queries of five seconds at most, eight at a time, until the sources are known.
_LEASE_SECONDS: Final = 60.0
# Of one sweep; the next one reads what is left.
_WORK: Final = timedelta(seconds=40)
_RELATED: Final = (
    "rollout__deployment",
    "rollout__stable_revision__deployment",
    "rollout__stable_revision__version__model",
    "rollout__baseline_revision__deployment",
    "rollout__baseline_revision__version__model",
    "rollout__candidate_revision__deployment",
    "rollout__candidate_revision__version__model",
)


def begin(rollout: Rollout) -> None:
    """Create the row if a guard needs Prometheus. Call inside the rollout's transaction."""
    if plans.plan_of(rollout).guards.has_readings:
        PrometheusReading.objects.create(rollout=rollout, next_check_at=clock.now())


def sweep(*, limit: int = 20) -> int:
    due, until = leases.due(PrometheusReading, limit=limit), clock.now() + _WORK
    for reading_id in due:
        if clock.now() < until:
            advance(reading_id=reading_id)
    return len(due)


def advance(*, reading_id: int) -> None:
    """Read once what is due; nothing while another worker has the lease."""
    lease = leases.claim(PrometheusReading, reading_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return
    row = PrometheusReading.objects.select_related(*_RELATED).get(pk=reading_id)
    rollout, at = row.rollout, clock.now()
    if not ROLLOUT[RolloutPhase(rollout.phase)]:
        leases.release(PrometheusReading, lease, next_check_at=None)
        return
    if rollout.phase not in JUDGED_PHASES or rollout.step_started_at is None:
        wait = timedelta(seconds=_IDLE_SECONDS)
        leases.release(PrometheusReading, lease, next_check_at=at + wait)
        return
    snapshot = snapshots.snapshot_of(rollout)
    step_key = snapshot.progress.step_key
    started_at = rollout.step_started_at
    before = readings.state_of(
        row, snapshot, lambda: counter_readings.block_lengths(snapshot, started_at)
    )
    lengths = counter_readings.lengths_chosen_anew(snapshot)
    if lengths is not None:
        before = prometheus_state.with_lengths(before, lengths)
    state = _read(snapshot, before, started_at)
    _store(row, lease, step_key, state)
    leases.release(
        PrometheusReading,
        lease,
        next_check_at=at + timedelta(seconds=blocks.READING_SECONDS),
    )


def target_of(rollout: Rollout, revision: Revision, *, step_seconds: float) -> QueryTarget:
    deployment = rollout.deployment
    return QueryTarget(
        namespace=deployment.namespace,
        deployment=deployment.name,
        model=revision.version.model.name,
        workload=revision.workload_name,
        stable_workload=rollout.compared_revision.workload_name,
        step_seconds=step_seconds,
    )


def _read(snapshot: RolloutSnapshot, state: State, started_at: datetime) -> State:
    """Return the state after one round of queries."""
    rollout, guards = snapshot.rollout, snapshot.plan.guards
    state = replace(state, gateway=gateway_readings.read(snapshot, state.gateway))
    if not guards.is_prometheus_needed:
        return state
    seconds = (clock.now() - started_at).total_seconds()
    sides = Sides(
        stable=target_of(rollout, rollout.compared_revision, step_seconds=seconds),
        candidate=target_of(rollout, rollout.candidate_revision, step_seconds=seconds),
    )
    of_histograms = {
        measure: histogram_state.queries(state.histogram(measure), measure, sides)
        for measure in Measure
        if prometheus_state.filter_by_measure(guards.percentiles, measure)
    }
    filled = [promql.fill(guard.query, sides.candidate) for guard in guards.queries]
    answers = prometheus.query(
        cluster_id=rollout.deployment.cluster_id,
        queries=[*chain.from_iterable(of_histograms.values()), *filled],
    )
    remaining, at = iter(answers), clock.now()
    for measure, queries in of_histograms.items():
        counts = list(islice(remaining, len(queries)))
        state = _with_histogram(snapshot, state, measure, counts, sides, at)
    return _with_queries(guards, state, filled, list(remaining), at)


def _with_histogram(
    snapshot: RolloutSnapshot,
    state: State,
    measure: Measure,
    readings: list[Reading],
    sides: Sides,
    at: datetime,
) -> State:
    load = pods.read(snapshot).load
    terms = histogram_state.HistogramTerms(
        guards=prometheus_state.filter_by_measure(_percentiles(snapshot), measure),
        sides=sides,
        at=at,
        payoff=snapshot.plan.analysis.payoff,
        load=load.difference if load else LoadDifference.NONE,
    )
    before = state.histogram(measure)
    after = histogram_state.take(before, measure, readings, terms)
    if counter_readings.is_warming(snapshot.rollout):
        # The histograms of a gateway do not say which pod answered, so the reading is left out.
        after = replace(after, tests=before.tests)
    return state.with_histogram(measure, after)


def _percentiles(snapshot: RolloutSnapshot) -> tuple[PercentileGuard, ...]:
    """Return the guards to judge. At a step without a stable side, they have the limits against its recorded
    figures.
    """
    guards = snapshot.plan.guards.percentiles
    if not snapshot.progress.is_alone:
        return guards
    recorded = Reference.from_json(snapshot.rollout.reference)
    absolute = (reference.absolute_percentile(guard, recorded) for guard in guards)
    return tuple(guard for guard in absolute if guard is not None)


def _with_queries(
    guards: PlanGuards, state: State, filled: list[str], answers: list[Any], at: datetime
) -> State:
    for guard, query, answer in zip(guards.queries, filled, answers, strict=True):
        state = prometheus_state.take_query(state, guard, answer, query=query, at=at)
    return state


def _store(row: PrometheusReading, lease: Lease, step: str, state: State) -> None:
    """Store the state unless the lease was lost: then another worker's reading is newer."""
    rows = PrometheusReading.objects.filter(pk=row.pk, lease_token=lease.token)
    if rows.update(step=step, state=state.to_json(), read_at=clock.now()):
        leases.nudge(Rollout, row.rollout_id)
        wake("deployments.advance_rollout", row.rollout_id)
