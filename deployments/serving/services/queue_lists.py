"""Reading the Workloads of a namespace, and their positions in LocalQueues of Kueue."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleet.clusters.domain.queues import Kueue
from fleet.clusters.services import queue_probe
from fleet.kube.domain.errors import ClusterError, ObjectNotFound
from fleet.kube.services import clients

logger = logging.getLogger(__name__)

Json = dict[str, Any]
# All that a Workload says of a ClusterQueue that is stopped, or lacks a flavor.
_INACTIVE: Final = re.compile(r"ClusterQueue (\S+) is inactive")


@dataclass(frozen=True, slots=True)
class QueueLists:
    """The Workloads of a namespace. `positions` are from 0 by queue and name of the Workload; a queue that is
    missing is not known.
    """

    workloads: Sequence[Json]
    positions: Mapping[str, Mapping[str, int]]
    problem: str = ""


def read(
    cluster_id: int, kueue: Kueue | None, *, namespace: str, queues: Sequence[str]
) -> QueueLists:
    """Read the Workloads and their positions. `kueue` is as the cluster was last checked. What cannot be read
    is a `problem`: that something waits is then all there is.
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
        _explained(cluster_id, kueue, workloads),
        {name: known for name, known in positions.items() if known is not None},
    )


def _explained(cluster_id: int, kueue: Kueue, workloads: Sequence[Json]) -> list[Json]:
    """Add to the Workloads' conditions why their ClusterQueues are inactive."""
    names = {match[1] for one in workloads for _, match in _inactive(_conditions(one))}
    reasons = {name: queue_probe.why_inactive(cluster_id, kueue, name) for name in sorted(names)}
    if not any(reasons.values()):
        return list(workloads)
    return [_with_reasons(one, reasons) for one in workloads]


def _with_reasons(workload: Json, reasons: Mapping[str, str]) -> Json:
    conditions = [dict(one) for one in _conditions(workload)]
    for condition, match in _inactive(conditions):
        if why := reasons[match[1]]:
            condition["message"] = f"{condition['message']}: {why}"
    return {**workload, "status": {**(workload.get("status") or {}), "conditions": conditions}}


def _conditions(workload: Json) -> Sequence[Json]:
    return (workload.get("status") or {}).get("conditions") or ()


def _inactive(conditions: Sequence[Json]) -> Iterator[tuple[Json, re.Match[str]]]:
    for condition in conditions:
        match = _INACTIVE.search(str(condition.get("message") or ""))
        if match and condition.get("status") == "False":
            yield condition, match


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
