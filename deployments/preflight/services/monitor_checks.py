"""Check that the cluster's Prometheus reads the deployment's ServiceMonitor."""

from __future__ import annotations

from typing import Final

from deployments.manifests.domain import namespace
from deployments.manifests.domain.metadata import ManifestContext
from deployments.preflight.domain.checks import Check
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain import monitor_selection
from fleet.clusters.domain.monitor_selection import PrometheusSelection
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects

_NAME: Final = "ServiceMonitor"


def check_monitor(context: ManifestContext, spec: ServingSpec, cluster: ClusterInfo) -> list[Check]:
    """Check that a Prometheus reads the ServiceMonitor. Empty without one, and where the operator is missing,
    which other checks report.
    """
    operator = cluster.capabilities.feature("prometheus").is_there
    if not spec.network.service_monitor or operator is False:
        return []
    selections = cluster.capabilities.prometheuses
    if selections is None:
        detail = f"Which ServiceMonitors the Prometheus of {cluster.name} reads is not known."
        fix = "Grant the portal list on prometheuses (manage.py cluster_rbac) and test the cluster."
        return [Check(_NAME, ok=None, detail=detail, fix=fix, is_blocking=False)]
    chosen = monitor_selection.choose(selections)
    if chosen is None:
        return [_nothing_reads(selections, cluster.name)]
    return [_check_namespace(context, chosen, cluster.id)]


def _nothing_reads(selections: tuple[PrometheusSelection, ...], cluster: str) -> Check:
    if not selections:
        detail = f"{cluster} has no Prometheus resource, so nothing reads the ServiceMonitor."
        fix = "Create a Prometheus of the operator, or turn service_monitor off."
    else:
        names = ", ".join(map(str, selections))
        detail = f"Prometheus {names} reads no ServiceMonitors."
        fix = "Set serviceMonitorSelector of the Prometheus: {} reads all."
    return Check(_NAME, ok=False, detail=detail, fix=fix, is_blocking=False)


def _check_namespace(
    context: ManifestContext, chosen: PrometheusSelection, cluster_id: int
) -> Check:
    try:
        labels = _labels_of_namespace(context, cluster_id)
    except ClusterError as error:
        detail = (
            f"Whether Prometheus {chosen} reads {context.namespace} is not known: {error.message}"
        )
        return Check(_NAME, ok=None, detail=detail, is_blocking=False)
    if chosen.reads_namespace(_NAME, context.namespace, labels):
        return Check(_NAME, ok=True, detail=f"Prometheus {chosen} reads it.")
    detail = f"Prometheus {chosen} does not read ServiceMonitors of namespace {context.namespace}."
    needed = chosen.labels_for_namespace(_NAME)
    fix = "Set serviceMonitorNamespaceSelector of the Prometheus: {} reads all namespaces."
    if needed:
        pairs = " ".join(f"{key}={value}" for key, value in sorted(needed.items()))
        fix = f"Run kubectl label namespace {context.namespace} {pairs}, or: {fix}"
    return Check(_NAME, ok=False, detail=detail, fix=fix, is_blocking=False)


def _labels_of_namespace(context: ManifestContext, cluster_id: int) -> dict[str, str]:
    """Return the labels of the live namespace together with those that the portal sets."""
    live = objects.get(
        cluster_id=cluster_id,
        api_version="v1",
        kind="Namespace",
        namespace=None,
        name=context.namespace,
    )
    labels = ((live or {}).get("metadata") or {}).get("labels") or {}
    return {**labels, **namespace.namespace(context)["metadata"]["labels"]}
