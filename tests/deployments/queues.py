"""Kueue on the recording cluster of a test: its queue, gated pods, their Workloads and positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deployments.models import Deployment
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.queues import Kueue, LocalQueue
from fleet.models import Cluster
from tests.deployments.world import World

QUEUE = "serving"
NAMESPACE = "vision"
KUEUE = Kueue(
    api="kueue.x-k8s.io/v1beta2",
    visibility_api="visibility.kueue.x-k8s.io/v1beta2",
    queues=(LocalQueue(NAMESPACE, QUEUE, "gpus"), LocalQueue("nlp", "other", "gpus")),
)
# All that a LocalQueue says when its ClusterQueue is stopped.
INACTIVE = "Can't submit new workloads to clusterQueue"
FULL = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu"


def install(world: World) -> None:
    """Kueue with one queue of the team."""
    row = Cluster.objects.get(pk=world.cluster_id)
    found = Capabilities.from_json(row.capabilities)
    features = {**found.features, "kueue": Feature(is_there=True)}
    row.capabilities = replace(found, features=features, kueue=KUEUE).to_json()
    row.save()
    put_queue(world)


def put_queue(world: World, **spec: Any) -> None:
    world.cluster.objects["LocalQueue", NAMESPACE, QUEUE] = queue_of(**spec)


def put_cluster_queue(world: World, **spec: Any) -> None:
    key = ("ClusterQueue", "", "gpus")
    metadata = {"name": "gpus"}
    world.cluster.objects[key] = {
        "apiVersion": KUEUE.api,
        "kind": "ClusterQueue",
        "metadata": metadata,
        "spec": spec,
    }


def queue_of(**spec: Any) -> dict[str, Any]:
    active = condition("Active", "True", "Ready", "Can submit new workloads to ClusterQueue")
    return {
        "apiVersion": KUEUE.api,
        "kind": "LocalQueue",
        "metadata": {"name": QUEUE, "namespace": NAMESPACE},
        "spec": {"clusterQueue": "gpus", **spec},
        "status": {"pendingWorkloads": 1, "admittedWorkloads": 2, "conditions": [active]},
    }


def workload_of(pod: str, name: str) -> dict[str, Any]:
    """What Kueue writes for one pod of a Deployment without quota."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"uid-{pod}"}
    template = {"spec": {"containers": [{"name": "server", "image": "triton"}]}}
    return {
        "apiVersion": KUEUE.api,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": {
            "queueName": QUEUE,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
        "status": {"conditions": [condition("QuotaReserved", "False", "Pending", FULL)]},
    }


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-07-25T11:00:00Z",
    }


def gate(world: World, deployment: Deployment, name: str, *, position: int | None = 0) -> None:
    """A pod of the workload that waits, with its Workload and its position from 0."""
    kind = next(
        key for key in world.cluster.objects if key[0] == "InferenceService" and key[2] == name
    )
    labels = world.cluster.objects[kind]["spec"]["predictor"]["labels"]
    pod, workload = f"{name}-0", f"pod-{name}-0-ab12c"
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    world.cluster.put_pod(NAMESPACE, pod, labels, {"phase": "Pending", "conditions": [scheduled]})
    made = world.cluster.objects["Pod", NAMESPACE, pod]
    made["metadata"]["uid"] = f"uid-{pod}"
    made["spec"] = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    world.cluster.objects["Workload", NAMESPACE, workload] = workload_of(pod, workload)
    place = ("PendingWorkload", NAMESPACE, workload)
    world.cluster.objects.pop(place, None)
    if position is not None:
        world.cluster.objects[place] = {
            "metadata": {"name": workload, "namespace": NAMESPACE},
            "localQueueName": QUEUE,
            "positionInLocalQueue": position,
            "positionInClusterQueue": position + 5,
            "priority": 0,
        }


def admit(world: World, deployment: Deployment, name: str) -> None:
    """Quota for its pod: it starts and is ready."""
    for key in [key for key in world.cluster.objects if key[0] in ("Workload", "PendingWorkload")]:
        del world.cluster.objects[key]
    world.cluster.make_ready(name)
    manage(world, name)


def manage(world: World, name: str) -> None:
    """As Kueue's webhook marks a pod."""
    pod = world.cluster.objects["Pod", NAMESPACE, f"{name}-0"]
    pod["metadata"]["labels"]["kueue.x-k8s.io/managed"] = "true"


def evict(world: World, name: str, why: str) -> None:
    """Kueue has marked its pod and deleted it; the pod still ends."""
    pod = world.cluster.objects["Pod", NAMESPACE, f"{name}-0"]
    pod["metadata"]["deletionTimestamp"] = "2026-07-25T12:00:00Z"
    pod["status"]["conditions"] = [
        {"type": "Ready", "status": "False"},
        {"type": "TerminationTarget", "status": "True", "reason": "Preempted", "message": why},
    ]
