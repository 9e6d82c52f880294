"""Reading the Workloads of a namespace, and their positions in LocalQueues of Kueue."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.clusters.domain.queues import Kueue
from fleet.kube.domain.errors import ClusterError, ObjectNotFound
from fleet.kube.services import clients

logger = logging.getLogger(__name__)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueueLists:
    """`positions` from 0 by queue and name of the Workload; a queue that is missing is not known."""

    workloads: Sequence[Json]
    positions: Mapping[str, Mapping[str, int]]
    problem: str = ""


def read(
    cluster_id: int, kueue: Kueue | None, *, namespace: str, queues: Sequence[str]
) -> QueueLists:
    """`kueue` is as the cluster was last checked. What cannot be read is a `problem`: that something waits is then all
    there is.
    """
    if kueue is None:
        return QueueLists((), {}, "Kueue was not found when the cluster was last checked")
    client = clients.client_for(cluster_id)
    try:
        workloads = client.list_all(kueue.workload_type, namespace=namespace).items
    except ClusterError as error:
        logger.info("namespace=%s no Workloads: %s", namespace, error.message)
        return QueueLists((), {}, f"its Workloads cannot be read: {error.message}")
    positions = {name: _positions(cluster_id, namespace, kueue, name) for name in queues}
    return QueueLists(
        workloads, {name: known for name, known in positions.items() if known is not None}
    )


def _positions(cluster_id: int, namespace: str, kueue: Kueue, queue: str) -> dict[str, int] | None:
    pending = kueue.pending_type(queue)
    if pending is None:
        return None
    client = clients.client_for(cluster_id)
    try:
        items = client.list_all(pending, namespace=namespace).items
    except ObjectNotFound:
        return None
    except ClusterError as error:
        logger.info("namespace=%s no positions: %s", namespace, error.message)
        return None
    return {item["metadata"]["name"]: int(item["positionInLocalQueue"]) for item in items}
