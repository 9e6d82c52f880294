"""Read what the gateway counts of both revisions of a rollout."""

from __future__ import annotations

from deployments.guards.domain import lost_requests
from deployments.guards.domain.lost_requests import GatewayState
from deployments.guards.domain.sequential_tests import Procedure
from deployments.manifests.domain import http_route
from deployments.manifests.selectors import rendering
from deployments.models import Revision
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from fleet.telemetry.services import gateway
from portal.core import clock


def read(snapshot: RolloutSnapshot, state: GatewayState) -> GatewayState:
    """Read the gateway and return the state after one more reading. A network call; nothing is read where no
    guard needs it.
    """
    rollout, limits = snapshot.rollout, snapshot.plan.guards.gateway_limits
    if not limits or snapshot.progress.weight == 0:
        return state
    services = {
        "stable": _service_of(rollout.compared_revision),
        "candidate": _service_of(rollout.candidate_revision),
    }
    reading = gateway.read(
        cluster_id=rollout.deployment.cluster_id,
        namespace=rollout.deployment.namespace,
        services=services.values(),
    )
    if reading.problem:
        return lost_requests.without_reading(
            state, reading.problem, is_countable=reading.is_countable
        )
    counts = {side: reading.counts.get(service, {}) for side, service in services.items()}
    judged = lost_requests.limits_at(limits, state, is_alone=snapshot.progress.is_alone)
    procedure = Procedure(judged, snapshot.plan.analysis.payoff)
    return lost_requests.take(state, procedure, counts, clock.now())


def _service_of(revision: Revision) -> str:
    spec = rendering.spec_of(revision)
    return http_route.service_name(revision.deployment.name, revision.number, spec)
