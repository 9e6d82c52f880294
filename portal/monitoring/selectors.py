"""Standing targets of a cluster, as rules need them."""

from __future__ import annotations

from deployments.models import ServiceTarget
from deployments.states import TargetMetric
from fleet.clusters.selectors import clusters
from portal.core.errors import NotFound
from portal.monitoring.rules.targets import TargetFacts


def list_targets(cluster: str) -> list[TargetFacts]:
    """Return the SLOs of all teams' deployments in the cluster that should run. Raises NotFound."""
    ids = {row.name: row.id for row in clusters.list_clusters()}
    if cluster not in ids:
        raise NotFound(f"There is no cluster {cluster}. There are: {', '.join(sorted(ids))}.")
    rows = (
        ServiceTarget.objects.filter(
            deployment__cluster_id=ids[cluster],
            deployment__is_stopped=False,
            deployment__is_retiring=False,
            deployment__is_retired=False,
        )
        .select_related("deployment__team", "deployment__stable_revision")
        .order_by("deployment__team__slug", "deployment__name", "metric")
    )
    return [_facts(row) for row in rows]


def _facts(row: ServiceTarget) -> TargetFacts:
    deployment = row.deployment
    stable = deployment.stable_revision
    return TargetFacts(
        team=deployment.team.slug,
        namespace=deployment.namespace,
        deployment=deployment.name,
        metric=TargetMetric(row.metric),
        objective_percent=float(row.objective_percent),
        threshold_ms=row.threshold_ms,
        engine=stable.spec["engine"] if stable else "",
    )
