"""What is recorded and told of alerts, and a cluster that does not answer."""

from __future__ import annotations

from datetime import timedelta

from deployments.models import Alert
from fleet.models import Cluster
from portal.notifications.models import Notice
from tests.deployments.world import World


def unreachable(world: World, *, is_reachable: bool = False) -> None:
    Cluster.objects.filter(pk=world.cluster_id).update(
        is_reachable=is_reachable,
        last_error="no route to host",
        last_seen_at=world.clock.at - timedelta(minutes=6),
    )


def told() -> list[tuple[str, str]]:
    rows = Notice.objects.filter(event__startswith="alert.").order_by("id")
    return [(row.event, row.subject) for row in rows]


def alerts() -> list[tuple[str, str, bool]]:
    rows = Alert.objects.order_by("id")
    return [(row.kind, row.subject, row.ended_at is None) for row in rows]
