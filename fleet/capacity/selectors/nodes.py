"""The GPU nodes that exist now."""

from __future__ import annotations

from django.db.models import QuerySet

from fleet.models import Node


def list_present(*, cluster_id: int | None = None) -> QuerySet[Node]:
    nodes = Node.objects.filter(gone_at=None, gpu_count__gt=0)
    return nodes if cluster_id is None else nodes.filter(cluster_id=cluster_id)
