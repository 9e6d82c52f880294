"""Results of the guards on the gateway and on Prometheus at the present step of a rollout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from deployments.guards.domain import (
    counter_verdicts,
    evidence,
    histograms,
    lost_requests,
    percentile_verdicts,
    percentiles,
    prometheus_state,
    promql,
    reference,
)
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.evidence import GuardResult
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.load import PodLoad
from deployments.guards.domain.lost_requests import GatewayState
from deployments.guards.domain.percentile_verdicts import Judging
from deployments.guards.domain.percentiles import QUANTILES, PercentileGuard
from deployments.guards.domain.prometheus_state import State
from deployments.guards.domain.promql import Watched
from deployments.guards.domain.reference import Reference
from deployments.guards.domain.sequential_tests import Procedure
from deployments.models import PrometheusReading
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from fleet.clusters.domain.capabilities import Capabilities
from portal.core import clock

# After a few missing readings the last known numbers are no longer current.
_STALE: Final = timedelta(seconds=40)
_NOT_YET: Final = "Prometheus was not queried at this step yet"


def state_of(
    row: PrometheusReading, snapshot: RolloutSnapshot, lengths: Callable[[], BlockLengths]
) -> State:
    """The stored state; of another step only the capital of its tests is left."""
    state = prometheus_state.from_json(row.state)
    if row.step == snapshot.progress.step_key:
        return state
    plan = snapshot.plan
    return prometheus_state.next_step(
        state,
        plan.guards.percentiles,
        Procedure(plan.guards.gateway_limits, plan.analysis.payoff),
        lengths(),
    )


def state_at(snapshot: RolloutSnapshot) -> State:
    """The state of the present step."""
    row = PrometheusReading.objects.filter(rollout=snapshot.rollout).first()
    return State() if row is None else state_of(row, snapshot, BlockLengths)


def sent_at(snapshot: RolloutSnapshot) -> tuple[int, int]:
    """Requests that the gateway sent to stable and candidate at this step; zeros where it is not read."""
    gateway = state_at(snapshot).gateway
    return (0, 0) if _gateway_problem(gateway) else gateway.sent


def guards_for(snapshot: RolloutSnapshot, load: PodLoad | None) -> tuple[GuardResult, ...]:
    """None where the plan has only guards on the counters of servers."""
    guards = snapshot.plan.guards
    if not guards.has_readings:
        return ()
    state = state_at(snapshot)
    by = _judging(snapshot, state, load)
    lost = [_judge_lost(snapshot, limit, state.gateway) for limit in guards.gateway_limits]
    percentile = [_judge_percentile(snapshot, guard, by) for guard in guards.percentiles]
    queried = [_judge_query(guard, state) for guard in guards.queries]
    return (
        *evidence.mark_dry_runs(lost, guards.gateway_limits),
        *evidence.mark_dry_runs(percentile, guards.percentiles),
        *evidence.mark_dry_runs(queried, guards.queries),
    )


def _judge_percentile(
    snapshot: RolloutSnapshot, guard: PercentileGuard, by: Judging
) -> GuardResult:
    if not snapshot.progress.is_alone:
        return percentile_verdicts.judge(guard, by)
    recorded = Reference.from_json(snapshot.rollout.reference)
    absolute = reference.absolute_percentile(guard, recorded)
    if absolute is None:
        return reference.not_recorded(guard.label, percentiles.SOURCE)
    result = percentile_verdicts.judge(absolute, by)
    before = histograms.bucket_of(recorded.histogram, QUANTILES[guard.metric])
    return replace(result, stable=f"{histograms.format_bucket(before)} before")


def _judge_query(guard: promql.QueryGuard, state: State) -> GuardResult:
    watched = state.watched.get(guard.name, Watched())
    return promql.judge(guard, watched, unknown=_unknown(watched.at))


def _judging(snapshot: RolloutSnapshot, state: State, load: PodLoad | None) -> Judging:
    plan = snapshot.plan
    source = histograms.source_named(state.source)
    return Judging(
        tests=state.tests,
        alpha=counter_verdicts.alpha_of_one_test(plan.analysis.alpha, tests=plan.guards.tests),
        is_strict=plan.analysis.is_strict,
        min_requests=snapshot.progress.step.min_requests,
        source=source.label if source else "",
        query=state.query,
        at=state.histogram_at,
        unknown=state.problem or _unknown(state.histogram_at),
        load=load,
    )


def _judge_lost(snapshot: RolloutSnapshot, limit: GuardLimit, gateway: GatewayState) -> GuardResult:
    feature = Capabilities.from_json(snapshot.rollout.deployment.cluster.capabilities).feature(
        "gateway-metrics"
    )
    if gateway.at is None and not gateway.problem and not feature.is_there:
        why = feature.why.rstrip(".") or "the cluster's gateway offers no metrics"
        gateway = lost_requests.without_reading(gateway, why, is_countable=False)
    plan = snapshot.plan
    by = counter_verdicts.Judging(
        tests=gateway.tests,
        alpha=counter_verdicts.alpha_of_one_test(plan.analysis.alpha, tests=plan.guards.tests),
        is_strict=plan.analysis.is_strict,
        min_requests=snapshot.progress.step.min_requests,
        unknown=_gateway_problem(gateway),
        is_mirrored=snapshot.progress.is_shadow,
    )
    return lost_requests.judge(limit, gateway, by, is_alone=snapshot.progress.is_alone)


def _gateway_problem(gateway: GatewayState) -> str:
    """Why there are no current numbers. One failed reading is made up for by the next."""
    if gateway.at is None:
        return gateway.problem or "the gateway was not read at this step yet"
    if clock.now() - gateway.at <= _STALE:
        return ""
    return gateway.problem or f"no data from the gateway since {gateway.at:%H:%M:%S} UTC"


def _unknown(at: datetime | None) -> str:
    if at is None:
        return _NOT_YET
    is_old = clock.now() - at > _STALE
    return f"no data from Prometheus since {at:%H:%M:%S} UTC" if is_old else ""
