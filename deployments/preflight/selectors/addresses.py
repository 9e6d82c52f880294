"""The names of a namespace on a cluster that have an address already."""

from __future__ import annotations

from deployments.models import Deployment, Pipeline


def deployments_at(
    *, cluster_id: int, namespace: str, without_id: int | None = None
) -> frozenset[str]:
    rows = Deployment.objects.filter(cluster_id=cluster_id, namespace=namespace, is_retired=False)
    if without_id is not None:
        rows = rows.exclude(pk=without_id)
    return frozenset(rows.order_by().values_list("name", flat=True))


def pipelines_at(*, cluster_id: int, namespace: str) -> frozenset[str]:
    rows = Pipeline.objects.filter(cluster_id=cluster_id, namespace=namespace, is_retired=False)
    return frozenset(rows.order_by().values_list("name", flat=True))


def taken_names(
    *, cluster_id: int, namespace: str, without_id: int | None = None
) -> frozenset[str]:
    """Return the names that have an address, without that of the deployment `without_id`."""
    served = deployments_at(cluster_id=cluster_id, namespace=namespace, without_id=without_id)
    return served | pipelines_at(cluster_id=cluster_id, namespace=namespace)
