"""Whether the guards of a requested rollout can be measured on its cluster, and each query works."""

from __future__ import annotations

from deployments.changes.services import submit
from deployments.guards.domain import promql
from deployments.guards.domain.promql import QueryGuard, QueryTarget
from deployments.models import Deployment, ModelVersion, Revision
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.prometheus import PrometheusError, QueryRefused, QueryResult
from fleet.clusters.services import prometheus
from fleet.gpus.domain import neuron
from portal.core.errors import Invalid

# $window in a trial, when no step has begun.
_SECONDS = 300


def require_usable(deployment: Deployment, version: ModelVersion, plan: RolloutPlan) -> None:
    """Check that the cluster has Prometheus and that it accepts each query. Raises Invalid if not.

    A Prometheus that does not answer refuses nothing: it may be back when the rollout runs, and until then its
    guards have not enough data. A network call: outside any transaction.
    """
    stable = submit.stable_of(deployment)
    if not plan.guards.is_prometheus_needed:
        return
    if not deployment.cluster.prometheus_url:
        raise _bad(
            f"{prometheus.NOT_REGISTERED} {deployment.cluster.name}. Leave out percentiles and "
            "PromQL, or ask a platform admin to register it."
        )
    target = _target_of(deployment, version, stable)
    filled = [promql.fill(guard.query, target) for guard in plan.guards.queries]
    if not filled:
        return
    answers = prometheus.query(cluster_id=deployment.cluster_id, queries=filled)
    for guard, answer in zip(plan.guards.queries, answers, strict=True):
        _require_usable_answer(guard, answer)


def require_measurable(spec: ServingSpec, plan: RolloutPlan) -> None:
    """Check that each guard can be measured. Raises Invalid for a figure that the candidate's accelerators never
    have, which would hold every step.
    """
    if spec.gpu_resource != neuron.DEVICE:
        return
    for kind in (limit.kind for limit in plan.guards.limits):
        if not kind.is_measured_on_neuron:
            raise _bad(
                f"{kind.label} is measured on NVIDIA GPUs only, and the candidate runs on Neuron devices. Remove "
                f"the guard {kind.name}."
            )


def _require_usable_answer(guard: QueryGuard, answer: QueryResult | PrometheusError) -> None:
    if isinstance(answer, QueryRefused):
        raise _bad(f"{guard.name}: Prometheus refuses the query: {answer.message}")
    if isinstance(answer, QueryResult) and len(answer.samples) > 1:
        raise _bad(
            f"{guard.name}: the query gives {len(answer.samples)} series, not one number; "
            "aggregate them, for example with sum(…)."
        )


def _target_of(deployment: Deployment, version: ModelVersion, stable: Revision) -> QueryTarget:
    return QueryTarget(
        namespace=deployment.namespace,
        deployment=deployment.name,
        model=version.model.name,
        workload=f"{deployment.name}-r{submit.next_number(deployment)}",
        stable_workload=stable.workload_name,
        step_seconds=_SECONDS,
    )


def _bad(message: str) -> Invalid:
    return Invalid(message, fields={"guards": message})
