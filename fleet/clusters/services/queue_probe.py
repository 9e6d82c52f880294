"""Probe for Kueue: the API versions that it serves, the LocalQueues that exist, and why a ClusterQueue admits nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from fleet.clusters.domain import queues
from fleet.clusters.domain.queues import Kueue, LocalQueue
from fleet.kube.domain.errors import ClusterError, NotAllowed, ObjectNotFound
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients

logger = logging.getLogger(__name__)


def read_kueue(client: KubeClient, groups: Mapping[str, list[str]]) -> Kueue | None:
    """Read the cluster's Kueue and its queues. `groups` has the versions of each API group, the preferred one
    first. None if its API group is not served.
    """
    versions, shown = groups.get(queues.GROUP), groups.get(queues.VISIBILITY_GROUP)
    if not versions:
        return None
    kueue = Kueue(
        api=f"{queues.GROUP}/{versions[0]}",
        visibility_api=f"{queues.VISIBILITY_GROUP}/{shown[0]}" if shown else "",
    )
    return replace(kueue, queues=_queues(client, kueue))


def _queues(client: KubeClient, kueue: Kueue) -> tuple[LocalQueue, ...] | None:
    try:
        return queues.parse(client.list_all(kueue.local_queue_type).items)
    except (NotAllowed, ObjectNotFound):
        return None


def why_inactive(cluster_id: int, kueue: Kueue, name: str) -> str:
    """Return why the ClusterQueue is inactive. Empty if it admits workloads, or may not be read."""
    try:
        queue = clients.client_for(cluster_id).get(kueue.cluster_queue_type, None, name)
    except ClusterError as error:
        logger.info("ClusterQueue %s: %s", name, error.message)
        return ""
    return queues.inactivity(queue)
