"""What Prometheus told of a rollout's present step, as lines of its evidence."""

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
from deployments.guards.domain.evidence import Guard
from deployments.guards.domain.percentile_verdicts import Judging
from deployments.guards.domain.prometheus_state import State
from deployments.guards.domain.promql import Watched
from deployments.models import PrometheusReading, Rollout
from deployments.plans.domain import rollout_plan
from deployments.plans.domain.rollout_plan import PlanSettings
from portal.core import clock

# A few readings that did not come: what is known is no longer what is.
_STALE: Final = timedelta(seconds=40)
_NOT_YET: Final = "Prometheus was not queried at this step yet"


def step_key(rollout: Rollout) -> str:
    """A step that begins again, after a pause before traffic, is read anew."""
    started_at = rollout.step_started_at
    return f"{rollout.step_index} {started_at.isoformat() if started_at else ''}"


def state_of(row: PrometheusReading, rollout: Rollout) -> State:
    """What was read at the present step; nothing of the one before."""
    return prometheus_state.from_json(row.state if row.step == step_key(rollout) else {})


def guards_for(*, rollout: Rollout) -> tuple[Guard, ...]:
    """Lines to append to the evidence of a running step; none where no guard needs Prometheus."""
    plan = rollout_plan.from_json(rollout.plan)
    if not plan.all_guards.is_prometheus_needed:
        return ()
    row = PrometheusReading.objects.filter(rollout=rollout).first()
    state = State() if row is None else state_of(row, rollout)
    by = _judging(rollout, plan, state)
    return (
        *(percentile_verdicts.judge(guard, by) for guard in plan.percentiles),
        *(_of_query(guard, state) for guard in plan.queries),
    )


def _of_query(guard: promql.QueryGuard, state: State) -> Guard:
    seen = state.watched.get(guard.name, Watched())
    return promql.judge(guard, seen, unknown=_unknown(seen.at))


def _judging(rollout: Rollout, plan: PlanSettings, state: State) -> Judging:
    source = histograms.source_named(state.source)
    return Judging(
        tests=state.tests,
        alpha=counter_verdicts.alpha_of_one_test(
            plan.analysis.alpha, tests=plan.tests, steps=len(rollout.steps)
        ),
        is_strict=plan.analysis.is_strict,
        min_requests=rollout.steps[rollout.step_index]["min_requests"],
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
