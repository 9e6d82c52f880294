"""Kueue on a cluster: the APIs that it serves, and the LocalQueues of namespaces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from fleet.kube.domain.resource_types import ResourceType

GROUP: Final = "kueue.x-k8s.io"
VISIBILITY_GROUP: Final = "visibility.kueue.x-k8s.io"
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
# For admission, and in newer releases for the choice of nodes that follows it.
_GATES: Final = f"{GROUP}/"


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """A LocalQueue of Kueue. `problem` is why it admits nothing now; empty while it does, or where that is not
    known.
    """

    namespace: str
    name: str
    cluster_queue: str
    problem: str = ""
    pending: int = 0
    admitted: int = 0


@dataclass(frozen=True, slots=True)
class Kueue:
    """The Kueue of a cluster. `api` and `visibility_api` are apiVersions; the latter is empty where positions are
    not served. `queues` None: the portal may not list them.
    """

    api: str
    visibility_api: str = ""
    queues: tuple[LocalQueue, ...] | None = None

    @property
    def local_queue_type(self) -> ResourceType:
        return ResourceType(self.api, "LocalQueue", "localqueues")

    @property
    def workload_type(self) -> ResourceType:
        return ResourceType(self.api, "Workload", "workloads")

    @property
    def cluster_queue_type(self) -> ResourceType:
        return ResourceType(self.api, "ClusterQueue", "clusterqueues")

    def pending_type(self, queue: str) -> ResourceType | None:
        """Return the resource type of the Workloads that wait in a LocalQueue, each with its position. None where
        they are not served.
        """
        if not self.visibility_api:
            return None
        plural = f"localqueues/{queue}/pendingworkloads"
        return ResourceType(self.visibility_api, "PendingWorkload", plural)

    def keep_namespaces(self, namespaces: Collection[str]) -> Kueue:
        """Drop the queues of other namespaces, whose names are those of teams."""
        if self.queues is None:
            return self
        return replace(self, queues=tuple(q for q in self.queues if q.namespace in namespaces))

    def names_in(self, namespace: str) -> list[str]:
        return [queue.name for queue in self.queues or () if queue.namespace == namespace]

    def to_json(self) -> dict[str, Any]:
        queues = None if self.queues is None else [asdict(queue) for queue in self.queues]
        return {"api": self.api, "visibility_api": self.visibility_api, "queues": queues}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Kueue:
        queues = raw["queues"]
        return cls(
            api=raw["api"],
            visibility_api=raw["visibility_api"],
            queues=None if queues is None else tuple(LocalQueue(**queue) for queue in queues),
        )


def is_gated(pod: Mapping[str, Any]) -> bool:
    """Whether it waits for Kueue, so that no scheduler has looked at it yet."""
    gates = (pod.get("spec") or {}).get("schedulingGates") or ()
    return any(str(gate.get("name", "")).startswith(_GATES) for gate in gates)


def parse(items: Iterable[Mapping[str, Any]]) -> tuple[LocalQueue, ...]:
    """Parse the LocalQueues, sorted by namespace and name."""
    queues = [_queue(item) for item in items]
    return tuple(sorted(queues, key=lambda queue: (queue.namespace, queue.name)))


def inactivity(queue: Mapping[str, Any]) -> str:
    """Return why a LocalQueue or ClusterQueue admits nothing; empty while it does, or does not say."""
    return _problem(queue.get("spec") or {}, queue.get("status") or {})


def _queue(item: Mapping[str, Any]) -> LocalQueue:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    return LocalQueue(
        namespace=item["metadata"]["namespace"],
        name=item["metadata"]["name"],
        cluster_queue=str(spec.get("clusterQueue", "")),
        problem=_problem(spec, status),
        pending=int(status.get("pendingWorkloads") or 0),
        admitted=int(status.get("admittedWorkloads") or 0),
    )


def _problem(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    if (spec.get("stopPolicy") or "None") != "None":
        return f"it is stopped ({spec['stopPolicy']})"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Active" and condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason") or "it is not active")
    return ""
