"""Add where the pods of a revision stand in their queue: a pod says only that something gates it.

Only a revision that names a queue and whose pods wait costs requests.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deployments.delivery.services.observe import Observation
from deployments.models import Deployment
from deployments.serving.domain import queue_state
from deployments.serving.domain.queue_state import QueueState
from fleet.clusters.domain import queues
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.queues import Kueue
from fleet.kube.domain.errors import ClusterError, ObjectNotFound
from fleet.kube.services import clients

logger = logging.getLogger(__name__)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Lists:
    """`positions` from 0 by queue and name of the Workload; a queue that is missing is not known."""

    workloads: Sequence[Json]
    positions: Mapping[str, Mapping[str, int]]
    problem: str = ""


def explain(deployment: Deployment, observation: Observation) -> Observation:
    """With the state of each revision that names a queue."""
    named = _queues_of(deployment)
    if not named:
        return observation
    pods = {number: observation.pods.get(number, []) for number in named}
    waiting = {
        queue
        for number, queue in named.items()
        if any(queues.is_gated(pod) for pod in pods[number])
    }
    lists = _read(deployment, sorted(waiting)) if waiting else _Lists((), {})
    states = {number: _state(queue, pods[number], lists) for number, queue in named.items()}
    known = {number: state for number, state in states.items() if state is not None}
    return observation.with_queues(known)


def _queues_of(deployment: Deployment) -> dict[int, str]:
    """The queue by revision number. Its name never changes with the scale."""
    revisions = (
        deployment.stable_revision,
        deployment.candidate_revision,
        deployment.baseline_revision,
    )
    named = {
        revision.number: str((revision.spec.get("placement") or {}).get("queue") or "")
        for revision in revisions
        if revision is not None
    }
    return {number: queue for number, queue in named.items() if queue}


def _state(queue: str, pods: Sequence[Json], lists: _Lists) -> QueueState | None:
    state = queue_state.of_pods(queue, pods, lists.workloads, lists.positions.get(queue))
    if state is not None and state.is_waiting and lists.problem and not state.why:
        return replace(state, why=lists.problem)
    return state


def _read(deployment: Deployment, names: Sequence[str]) -> _Lists:
    kueue = Capabilities.from_json(deployment.cluster.capabilities).kueue
    if kueue is None:
        return _Lists((), {}, "Kueue was not found when the cluster was last checked")
    client = clients.client_for(deployment.cluster_id)
    try:
        workloads = client.list_all(kueue.workload_type, namespace=deployment.namespace).items
    except ClusterError as error:
        # That they wait is then all there is.
        logger.info("deployment=%s no Workloads: %s", deployment.pk, error.message)
        return _Lists((), {}, f"its Workloads cannot be read: {error.message}")
    positions = {name: _positions(deployment, kueue, name) for name in names}
    return _Lists(
        workloads, {name: known for name, known in positions.items() if known is not None}
    )


def _positions(deployment: Deployment, kueue: Kueue, queue: str) -> dict[str, int] | None:
    pending = kueue.pending_type(queue)
    if pending is None:
        return None
    client = clients.client_for(deployment.cluster_id)
    try:
        items = client.list_all(pending, namespace=deployment.namespace).items
    except ObjectNotFound:
        return None
    except ClusterError as error:
        logger.info("deployment=%s no positions: %s", deployment.pk, error.message)
        return None
    return {item["metadata"]["name"]: int(item["positionInLocalQueue"]) for item in items}
