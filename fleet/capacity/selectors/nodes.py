"""The GPU nodes that exist now."""

from __future__ import annotations

from django.db.models import QuerySet

from fleet.models import Node


def list_present(*, cluster_id: int | None = None, name: str = "") -> QuerySet[Node]:
    nodes = Node.objects.filter(gone_at=None, gpu_count__gt=0)
    if cluster_id is not None:
        nodes = nodes.filter(cluster_id=cluster_id)
    return nodes.filter(name=name) if name else nodes
