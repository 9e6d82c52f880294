"""Add where the pods of a revision stand in their queue: a pod says only that something gates it.

Only a revision that names a queue and whose pods wait costs requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deployments.delivery.services.observe import DeploymentObservation
from deployments.models import Deployment
from deployments.serving.domain import queue_state
from deployments.serving.domain.queue_state import QueueState
from deployments.serving.services import queue_lists
from deployments.serving.services.queue_lists import QueueLists
from fleet.clusters.domain import queues
from fleet.clusters.domain.capabilities import Capabilities

Json = dict[str, Any]


def explain(deployment: Deployment, observation: DeploymentObservation) -> DeploymentObservation:
    """Add the queue state of each revision that names a queue."""
    named = _queues_of(deployment)
    if not named:
        return observation
    pods = {number: observation.pods.get(number, []) for number in named}
    waiting = {
        queue
        for number, queue in named.items()
        if any(queues.is_gated(pod) for pod in pods[number])
    }
    lists = _read(deployment, sorted(waiting)) if waiting else QueueLists((), {})
    states = {number: _state(queue, pods[number], lists) for number, queue in named.items()}
    known = {number: state for number, state in states.items() if state is not None}
    return observation.with_queues(known)


def _queues_of(deployment: Deployment) -> dict[int, str]:
    """Return the queue by revision number. Its name never changes with the scale."""
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


def _state(queue: str, pods: Sequence[Json], lists: QueueLists) -> QueueState | None:
    state = queue_state.read_pod_queue(queue, pods, lists.workloads, lists.positions.get(queue))
    if state is not None and state.is_waiting and lists.problem and not state.why:
        return replace(state, why=lists.problem)
    return state


def _read(deployment: Deployment, names: Sequence[str]) -> QueueLists:
    kueue = Capabilities.from_json(deployment.cluster.capabilities).kueue
    return queue_lists.read(
        deployment.cluster_id, kueue, namespace=deployment.namespace, queues=names
    )
