"""Before a rollout is asked for: can its guards be measured there, and does each query work."""

from __future__ import annotations

from deployments.changes.services import submit
from deployments.guards.domain import promql
from deployments.guards.domain.promql import Place, QueryGuard
from deployments.models import Deployment, ModelVersion, Revision
from deployments.plans.domain.rollout_plan import RolloutPlan
from fleet.clusters.domain.prometheus import PrometheusError, QueryRefused, QueryResult
from fleet.clusters.services import prometheus
from portal.core.errors import Invalid

# What $window is in a trial: no step has begun.
_SECONDS = 300


def require_usable(deployment: Deployment, version: ModelVersion, plan: RolloutPlan) -> None:
    """Raises Invalid where the cluster has no Prometheus, or a query is refused by it.

    One that does not answer now refuses nothing: it may be back when the rollout runs, and until
    then its guards are "not enough data". A network call: outside any transaction.
    """
    stable = submit.stable_of(deployment)
    if not plan.guards.is_prometheus_needed:
        return
    if not deployment.cluster.prometheus_url:
        raise _bad(
            f"{prometheus.NOT_REGISTERED} {deployment.cluster.name}. Leave out percentiles and "
            "PromQL, or ask a platform admin to register it."
        )
    place = _place_of(deployment, version, stable)
    filled = [promql.fill(guard.query, place) for guard in plan.guards.queries]
    if not filled:
        return
    answers = prometheus.query(cluster_id=deployment.cluster_id, queries=filled)
    for guard, found in zip(plan.guards.queries, answers, strict=True):
        _require_fit(guard, found)


def _require_fit(guard: QueryGuard, found: QueryResult | PrometheusError) -> None:
    if isinstance(found, QueryRefused):
        raise _bad(f"{guard.name}: Prometheus refuses the query: {found.message}")
    if isinstance(found, QueryResult) and len(found.samples) > 1:
        words = f"{guard.name}: the query gives {len(found.samples)} series, not one number"
        raise _bad(f"{words}; aggregate them, for example with sum(…).")


def _place_of(deployment: Deployment, version: ModelVersion, stable: Revision) -> Place:
    return Place(
        namespace=deployment.namespace,
        deployment=deployment.name,
        model=version.model.name,
        workload=f"{deployment.name}-r{submit.next_number(deployment)}",
        stable_workload=stable.workload_name,
        step_seconds=_SECONDS,
    )


def _bad(words: str) -> Invalid:
    return Invalid(words, fields={"guards": words})
