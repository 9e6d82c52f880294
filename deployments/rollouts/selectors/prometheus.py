"""The numbers of the gateway and Prometheus at the present step of a rollout, as far as they were read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from deployments.guards.domain import lost_requests, prometheus_state
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.families.percentiles import Measure
from deployments.guards.domain.families.protocol import Reads
from deployments.guards.domain.guard_set import PlanGuards
from deployments.guards.domain.lost_requests import GatewayState
from deployments.guards.domain.prometheus_state import State
from deployments.guards.domain.sequential_tests import Procedure
from deployments.models import PrometheusReading
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from fleet.clusters.domain.capabilities import Capabilities
from portal.core import clock
from portal.core.single_row import find_one

# After a few missing readings the last known numbers are no longer current.
_STALE: Final = timedelta(seconds=40)
_NOT_YET: Final = "Prometheus was not queried at this step yet"


def state_of(
    row: PrometheusReading, snapshot: RolloutSnapshot, lengths: Callable[[], BlockLengths]
) -> State:
    """Return the stored state; of another step only the capital of its tests is left."""
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
    """Return the state of the present step."""
    row = find_one(PrometheusReading.objects.filter(rollout=snapshot.rollout))
    return State() if row is None else state_of(row, snapshot, BlockLengths)


def count_sent(snapshot: RolloutSnapshot) -> tuple[int, int]:
    """Return the requests that the gateway sent to stable and candidate at this step. Zeros where it is not read."""
    gateway = state_at(snapshot).gateway
    return (0, 0) if _gateway_problem(gateway) else gateway.sent


def read(snapshot: RolloutSnapshot) -> State:
    """Return the state of the present step, with the reason where the cluster's gateway cannot be read."""
    guards = snapshot.plan.guards
    state = state_at(snapshot) if guards.has_readings else State()
    gateway = state.gateway
    if not guards.gateway_limits or gateway.at is not None or gateway.problem:
        return state
    capabilities = Capabilities.from_json(snapshot.rollout.deployment.cluster.capabilities)
    feature = capabilities.feature("gateway-metrics")
    if feature.is_there:
        return state
    why = feature.why.rstrip(".") or "the cluster's gateway offers no metrics"
    return replace(state, gateway=lost_requests.without_reading(gateway, why, is_countable=False))


def describe_unknown(state: State) -> dict[Reads, str]:
    """Say why there are no current numbers of the gateway. Empty while there are."""
    return {Reads.GATEWAY: _gateway_problem(state.gateway)}


def unknown_histograms(guards: PlanGuards, state: State) -> dict[Measure, str]:
    """Say why there are no current numbers of each histogram that a guard needs, by what it counts."""
    needed = {guard.kind.measure for guard in guards.percentiles}
    read = {measure: state.histogram(measure) for measure in needed}
    return {measure: of.problem or _unknown(of.at) for measure, of in read.items()}


def unknown_queries(guards: PlanGuards, state: State) -> dict[str, str]:
    """Say why there are no current numbers of each query, by the name of its guard."""
    times = {name: watched.at for name, watched in state.watched.items()}
    return {guard.name: _unknown(times.get(guard.name)) for guard in guards.queries}


def _gateway_problem(gateway: GatewayState) -> str:
    """Say why there are no current numbers. Empty while there are: one failed reading is made up for by the
    next.
    """
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
