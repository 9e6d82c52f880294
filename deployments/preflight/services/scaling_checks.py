"""Check the metric of an autoscaler: that it is collected, and that it reflects load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from deployments.manifests.domain import autoscaling, knative
from deployments.manifests.domain.metadata import Manifest
from deployments.preflight.domain.checks import Check
from deployments.spec.domain import default_scaling
from deployments.spec.domain.scaling import FIXED, HPA, KEDA, KNATIVE
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain import knative_flags
from fleet.clusters.domain.prometheus import PrometheusError
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.clusters.services import prometheus

NAME: Final = "Scaling"
_READERS: Final = {HPA: "The HPA's adapter", KEDA: "KEDA"}
KNATIVE_PODS: Final = "Knative"
# When the replica count became fixed. Changing replicas in place cannot set an autoscaler.
_RAISE_LIMIT: Final = {
    False: "Raise min replicas or choose an autoscaler.",
    True: "Raise min replicas or request a canary that names an autoscaler.",
}


def check_default(
    requested: ServingSpec, spec: ServingSpec, cluster: ClusterInfo, *, is_in_place: bool = False
) -> list[Check]:
    """Report the autoscaler chosen by default. `check_scaling` covers KEDA."""
    detail = default_scaling.explain(requested, spec, cluster.capabilities, is_in_place=is_in_place)
    if not detail or spec.scaling.kind == KEDA:
        return []
    fix = "" if spec.scaling.kind != FIXED else _RAISE_LIMIT[is_in_place]
    ok = True if spec.scaling.kind != FIXED else None
    return [Check(NAME, ok=ok, detail=detail, fix=fix, is_blocking=False)]


def check_scaling(spec: ServingSpec, cluster: ClusterInfo) -> list[Check]:
    """Check the metrics that an autoscaler reads from Prometheus, and warn of an HPA on CPU or memory.
    Empty where it reads none.
    """
    if spec.scaling.kind == HPA and spec.scaling.metric in ("cpu", "memory"):
        detail = (
            f"HPA uses {spec.scaling.metric}, a poor signal for GPU load: it may stay at min "
            "replicas while requests queue."
        )
        fix = "Use keda or knative if the cluster supports them, or a fixed number of replicas."
        return [Check(NAME, ok=None, detail=detail, fix=fix, is_blocking=False)]
    series = autoscaling.metric_names(spec)
    return [_check_metric(spec, cluster, name, metric) for name, metric in series.items()]


def check_knative(
    spec: ServingSpec, cluster: ClusterInfo, manifests: Sequence[Manifest]
) -> list[Check]:
    """Check the pod's fields against Knative's configuration. Knative refuses fields that it does not allow,
    and KServe sends it the pod only after the dry run.
    """
    if spec.scaling.kind != KNATIVE:
        return []
    fields = knative.needed_flags(manifests)
    flags = cluster.capabilities.knative_flags
    if flags is None:
        detail = (
            f"Whether Knative on {cluster.name} allows {_listed(fields.values())} is not known."
        )
        fix = "Grant the portal get on ConfigMap config-features (manage.py cluster_rbac)."
        return [Check(KNATIVE_PODS, ok=None, detail=detail, fix=fix, is_blocking=False)]
    refused = knative_flags.list_disabled(flags, fields)
    if not refused:
        detail = f"Knative on {cluster.name} allows every field of these pods."
        return [Check(KNATIVE_PODS, ok=True, detail=detail)]
    names = _listed(fields[flag] for flag in refused)
    detail = f"Knative on {cluster.name} refuses pods with {names}."
    fix = f"Choose another autoscaler, or a platform admin must {knative_flags.describe_fix(refused)}."
    return [Check(KNATIVE_PODS, ok=False, detail=detail, fix=fix)]


def _listed(fields: Iterable[str]) -> str:
    return ", ".join(sorted(set(fields)))


def _check_metric(spec: ServingSpec, cluster: ClusterInfo, name: str, metric: str) -> Check:
    is_own = name in autoscaling.OWN_METRICS
    can_monitor = cluster.capabilities.offers("service-monitor").ok
    reader = _READERS[spec.scaling.kind]
    if is_own and spec.network.service_monitor and can_monitor is not False:
        detail = f"{reader} uses {metric}, scraped by the deployment's ServiceMonitor."
        return Check(NAME, ok=True, detail=detail)
    if cluster.has_prometheus:
        return _check_in_prometheus(cluster, metric, reader=reader, fix=_fix(name))
    detail = f"{metric} is not scraped, so {reader} would never scale."
    return Check(NAME, ok=False, detail=detail, fix=_fix(name))


def _check_in_prometheus(cluster: ClusterInfo, metric: str, *, reader: str, fix: str) -> Check:
    """Query Prometheus once for the metric."""
    [result] = prometheus.query(cluster_id=cluster.id, queries=[f"count({metric})"])
    if isinstance(result, PrometheusError):
        detail = f"Could not check whether {metric} is scraped: {result.message}."
        return Check(NAME, ok=None, detail=detail, is_blocking=False)
    if result.samples:
        return Check(NAME, ok=True, detail=f"{reader} uses {metric}, which Prometheus scrapes.")
    detail = f"The Prometheus of {cluster.name} does not scrape {metric}."
    return Check(NAME, ok=False, detail=detail, fix=fix)


def _fix(name: str) -> str:
    if name in autoscaling.OWN_METRICS:
        return (
            "Turn service_monitor on, or ask a platform admin to register the Prometheus that "
            "scrapes the pods."
        )
    source = "dcgm-exporter" if name.startswith("gpu") else "the gateway"
    return f"Use the queue metric with service_monitor on, or have {source} scraped."
