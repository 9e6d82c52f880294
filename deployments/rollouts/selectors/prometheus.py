"""Results of the guards on Prometheus at the present step of a rollout."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from deployments.guards.domain import (
    counter_verdicts,
    histograms,
    percentile_verdicts,
    prometheus_state,
    promql,
)
from deployments.guards.domain.evidence import GuardResult
from deployments.guards.domain.percentile_verdicts import Judging
from deployments.guards.domain.prometheus_state import State
from deployments.guards.domain.promql import Watched
from deployments.models import PrometheusReading
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from portal.core import clock

# After a few missing readings the last known numbers are no longer current.
_STALE: Final = timedelta(seconds=40)
_NOT_YET: Final = "Prometheus was not queried at this step yet"


def state_of(row: PrometheusReading, step_key: str) -> State:
    """The stored state; empty when it is of another step."""
    return prometheus_state.from_json(row.state if row.step == step_key else {})


def guards_for(snapshot: RolloutSnapshot) -> tuple[GuardResult, ...]:
    """None where no guard of the plan needs Prometheus."""
    guards = snapshot.plan.guards
    if not guards.is_prometheus_needed:
        return ()
    row = PrometheusReading.objects.filter(rollout=snapshot.rollout).first()
    state = State() if row is None else state_of(row, snapshot.progress.step_key)
    by = _judging(snapshot, state)
    return (
        *(percentile_verdicts.judge(guard, by) for guard in guards.percentiles),
        *(_judge_query(guard, state) for guard in guards.queries),
    )


def _judge_query(guard: promql.QueryGuard, state: State) -> GuardResult:
    watched = state.watched.get(guard.name, Watched())
    return promql.judge(guard, watched, unknown=_unknown(watched.at))


def _judging(snapshot: RolloutSnapshot, state: State) -> Judging:
    plan = snapshot.plan
    source = histograms.source_named(state.source)
    return Judging(
        tests=state.tests,
        alpha=counter_verdicts.alpha_of_one_test(
            plan.analysis.alpha, tests=plan.guards.tests, steps=len(plan.steps)
        ),
        is_strict=plan.analysis.is_strict,
        min_requests=snapshot.progress.step.min_requests,
        source=source.label if source else "",
        query=state.query,
        at=state.histogram_at,
        unknown=state.problem or _unknown(state.histogram_at),
    )


def _unknown(at: datetime | None) -> str:
    if at is None:
        return _NOT_YET
    is_old = clock.now() - at > _STALE
    return f"no data from Prometheus since {at:%H:%M:%S} UTC" if is_old else ""
