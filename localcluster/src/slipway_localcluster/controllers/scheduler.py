"""Binds pods to nodes. No preemption, no spreading, no pod affinity."""

from collections import defaultdict
from collections.abc import Sequence

from slipway_localcluster.controllers import conditions, placement, resources
from slipway_localcluster.controllers.events import Recorder
from slipway_localcluster.errors import Conflict, JsonObject, NotFound
from slipway_localcluster.kinds import CLAIM, NODE, POD
from slipway_localcluster.objects import FINISHED_PHASES
from slipway_localcluster.store import Store

_NAME = "default-scheduler"


class Scheduler:
    """Binds one pod at a time, oldest first, against the pods that are bound already."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events = Recorder(store, _NAME)

    def reconcile(self) -> None:
        pods = self._store.list(POD)
        waiting = [pod for pod in pods if _is_waiting(pod) and is_active(pod)]
        if not waiting:
            return
        nodes = self._store.list(NODE)
        used = used_by_node(pods)
        for pod in sorted(waiting, key=_age):
            chosen = placement.place(pod, nodes, used, missing_claim=self._missing_claim(pod))
            if chosen.node is None:
                self._refuse(pod, chosen.message)
            elif self._bind(pod, chosen.node):
                used[chosen.node] = resources.add(
                    used[chosen.node], resources.sum_pod_requests(pod)
                )

    def _missing_claim(self, pod: JsonObject) -> str:
        for volume in pod["spec"].get("volumes") or ():
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if name and self._store.find(CLAIM, pod["metadata"]["namespace"], name) is None:
                return str(name)
        return ""

    def _bind(self, pod: JsonObject, node: str) -> bool:
        pod["spec"]["nodeName"] = node
        try:
            bound = self._store.replace(POD, pod)
            self._report(bound, conditions.condition("PodScheduled", conditions.TRUE))
        except (Conflict, NotFound):
            # Changed or deleted meanwhile; the next pass retries.
            return False
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self._events.normal(bound, "Scheduled", f"Successfully assigned {name} to {node}")
        return True

    def _refuse(self, pod: JsonObject, message: str) -> None:
        current = conditions.find(pod, "PodScheduled")
        if current is not None and current.get("message") == message:
            return
        refused = conditions.condition(
            "PodScheduled", conditions.FALSE, reason="Unschedulable", message=message
        )
        try:
            self._report(pod, refused)
        except (Conflict, NotFound):
            return
        self._events.warning(pod, "FailedScheduling", message)

    def _report(self, pod: JsonObject, scheduled: JsonObject) -> None:
        status = dict(pod.get("status") or {})
        status["phase"] = status.get("phase") or "Pending"
        others = [item for item in status.get("conditions") or () if item["type"] != "PodScheduled"]
        status["conditions"] = conditions.merge(status.get("conditions"), [scheduled, *others])
        self._store.replace_status(POD, {**pod, "status": status})


def _is_waiting(pod: JsonObject) -> bool:
    """A pod that names another scheduler is left to it."""
    spec = pod["spec"]
    is_ours = (spec.get("schedulerName") or _NAME) == _NAME
    return is_ours and not spec.get("nodeName")


def is_active(pod: JsonObject) -> bool:
    """Return whether a pod is neither finished nor being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in FINISHED_PHASES and "deletionTimestamp" not in pod["metadata"]


def used_by_node(pods: Sequence[JsonObject]) -> defaultdict[str, resources.Amounts]:
    """Return the requested amounts per node. A pod being deleted counts until it is gone."""
    used: defaultdict[str, resources.Amounts] = defaultdict(dict)
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and (pod.get("status") or {}).get("phase") not in FINISHED_PHASES:
            used[node] = resources.add(used[node], resources.sum_pod_requests(pod))
    return used


def _age(pod: JsonObject) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]
