"""Check the queue that a request names against those of the cluster."""

from __future__ import annotations

from typing import Final

from deployments.manifests.domain.metadata import ManifestContext
from deployments.preflight.domain.checks import Check
from deployments.spec.domain.engines import LLM_SERVICE
from deployments.spec.domain.placement.settings.kueue_queue import QUEUE
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain import queues
from fleet.clusters.domain.queues import Kueue, LocalQueue
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.clusters.services import queue_probe
from fleet.kube.domain.errors import ClusterError, ObjectNotFound
from fleet.kube.services import clients

# Kueue appends the number of a group to the name of a LeaderWorkerSet, and both are one label.
_LONGEST_GROUP: Final = 39
_LEADER_WORKER_SET: Final = "-kserve-mn"
_REVISION: Final = len("-r99")


def check_queue(context: ManifestContext, spec: ServingSpec, cluster: ClusterInfo) -> list[Check]:
    """Check the queue of Kueue. Empty without a queue, and on a cluster without Kueue: what the cluster lacks
    is a check of its own.
    """
    name, kueue = spec.placement.queue, cluster.capabilities.kueue
    if not name or kueue is None:
        return []
    checks = [_check_name(context)] if spec.engine == LLM_SERVICE and spec.nodes > 1 else []
    try:
        found = clients.client_for(cluster.id).get(kueue.local_queue_type, context.namespace, name)
    except ObjectNotFound:
        return [*checks, _missing(name, context.namespace, kueue)]
    except ClusterError as error:
        detail = f"LocalQueue {name} of {context.namespace} could not be verified: {error.message}"
        return [*checks, Check(QUEUE, ok=None, detail=detail, is_blocking=False)]
    queue = queues.parse([found])[0]
    of_cluster = (
        queue_probe.why_inactive(cluster.id, kueue, queue.cluster_queue) if queue.problem else ""
    )
    return [*checks, _of_queue(queue, of_cluster)]


def _missing(name: str, namespace: str, kueue: Kueue) -> Check:
    names = ", ".join(kueue.names_in(namespace)) or "none"
    detail = f"placement.queue: LocalQueue {name} of {namespace} does not exist. There: {names}."
    fix = "Enter one that exists, leave it empty, or ask a platform admin to create it."
    return Check(QUEUE, ok=False, detail=detail, fix=fix)


def _of_queue(queue: LocalQueue, of_cluster: str) -> Check:
    """Check that the queue admits pods. `of_cluster` says why its ClusterQueue admits nothing, which the
    LocalQueue does not say.
    """
    title = f"LocalQueue {queue.name} of {queue.namespace}"
    if queue.problem:
        detail = f"{title} admits nothing now: {queue.problem}"
        if of_cluster:
            detail = f"{detail}; of ClusterQueue {queue.cluster_queue}: {of_cluster}"
        fix = "Pods wait until it does. Ask a platform admin."
        return Check(QUEUE, ok=None, detail=detail, fix=fix, is_blocking=False)
    waiting = f"{queue.pending} wait{'s' if queue.pending == 1 else ''}, {queue.admitted} admitted"
    detail = f"{title} admits pods from ClusterQueue {queue.cluster_queue}: {waiting}."
    return Check(QUEUE, ok=True, detail=detail, is_blocking=False)


def _check_name(context: ManifestContext) -> Check:
    most = _LONGEST_GROUP - len(_LEADER_WORKER_SET) - _REVISION
    detail = f"Kueue takes LeaderWorkerSets with names of up to {_LONGEST_GROUP} characters."
    fix = f"Use a name of up to {most} characters, one node for a replica, or no queue."
    return Check(QUEUE, ok=len(context.deployment) <= most, detail=detail, fix=fix)
