"""Checks of what an autoscaler watches: whether anything collects it, and whether it tells the load."""

from __future__ import annotations

from typing import Final

from deployments.manifests.domain import autoscaling
from deployments.preflight.domain.checks import Check
from deployments.spec.domain import default_scaling
from deployments.spec.domain.parts import FIXED, HPA, KEDA
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.prometheus import PrometheusError
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.clusters.services import prometheus

NAME: Final = "Scaling"
# Of a number that became fixed; a change of replicas alone cannot name an autoscaler.
_MORE: Final = {
    False: "Raise min replicas or choose an autoscaler.",
    True: "Raise min replicas or request a canary that names an autoscaler.",
}


def of_default(
    requested: ServingSpec, spec: ServingSpec, cluster: ClusterInfo, *, is_in_place: bool = False
) -> list[Check]:
    """Where the request named no autoscaler: which it got, and why. KEDA is checked as any other."""
    offered = Capabilities.from_json(cluster.capabilities)
    words = default_scaling.explain(requested, spec, offered, is_in_place=is_in_place)
    if not words or spec.scaling.kind == KEDA:
        return []
    fix = "" if spec.scaling.kind != FIXED else _MORE[is_in_place]
    ok = True if spec.scaling.kind != FIXED else None
    return [Check(NAME, ok=ok, detail=words, fix=fix, is_blocking=False)]


def of_scaling(spec: ServingSpec, cluster: ClusterInfo) -> list[Check]:
    """None for a fixed number, and for what the cluster sees by itself."""
    if spec.scaling.kind == HPA:
        words = (
            f"HPA uses {spec.scaling.metric}, a poor signal for GPU load: it may stay at min "
            "replicas while requests queue."
        )
        fix = "Use keda or knative if the cluster supports them, or a fixed number of replicas."
        return [Check(NAME, ok=None, detail=words, fix=fix, is_blocking=False)]
    metric = autoscaling.metric_name(spec)
    if spec.scaling.kind != KEDA or not metric:
        return []
    return [_of_metric(spec, cluster, metric)]


def _of_metric(spec: ServingSpec, cluster: ClusterInfo, metric: str) -> Check:
    offered = Capabilities.from_json(cluster.capabilities)
    is_own = spec.scaling.metric in autoscaling.POD_METRICS
    can_monitor = offered.offers("service-monitor").ok
    if is_own and spec.network.service_monitor and can_monitor is not False:
        words = f"KEDA uses {metric}, scraped by the deployment's ServiceMonitor."
        return Check(NAME, ok=True, detail=words)
    if cluster.has_prometheus:
        return _as_asked(cluster, metric, is_own=is_own)
    detail = f"{metric} is not scraped, so KEDA would never scale."
    return Check(NAME, ok=False, detail=detail, fix=_fix(is_own=is_own))


def _as_asked(cluster: ClusterInfo, metric: str, *, is_own: bool) -> Check:
    """One network call."""
    [answer] = prometheus.ask(cluster_id=cluster.id, queries=[f"count({metric})"])
    if isinstance(answer, PrometheusError):
        words = f"Could not check whether {metric} is scraped: {answer.message}."
        return Check(NAME, ok=None, detail=words, is_blocking=False)
    if answer.samples:
        return Check(NAME, ok=True, detail=f"KEDA uses {metric}, which Prometheus scrapes.")
    detail = f"The Prometheus of {cluster.name} does not scrape {metric}."
    return Check(NAME, ok=False, detail=detail, fix=_fix(is_own=is_own))


def _fix(*, is_own: bool) -> str:
    if is_own:
        return (
            "Turn service_monitor on, or ask a platform admin to register the Prometheus that "
            "scrapes the pods."
        )
    return "Use the queue metric with service_monitor on, or have the gateway scraped."
