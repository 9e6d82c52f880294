"""The place of a revision's pods in a queue of Kueue, by their Workloads and the visibility API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from fleet.clusters.domain import queues

PENDING: Final = "pending"
ADMITTED: Final = "admitted"
EVICTED: Final = "evicted"
IGNORED: Final = "ignored"
# How the reason of a pod that waits for Kueue reads.
QUEUED: Final = "queued"
# Kueue marks the pods that it manages; where its integration is off, a queue is a label like any other.
_MANAGED: Final = "kueue.x-k8s.io/managed"
_PARENT: Final = "kueue.x-k8s.io/pod-suspending-parent"
_PREBUILT: Final = "kueue.x-k8s.io/prebuilt-workload-name"
# Kueue sets it on a pod before it deletes it.
_TERMINATION: Final = "TerminationTarget"
_NO_WORKLOAD: Final = "Kueue has made no Workload for it yet"
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QueueState:
    """The place of pods in a queue. `state` is pending, admitted, evicted (it waits again) or ignored: pods
    run, and Kueue does not manage them. `position` is that of the first of its `waiting` pods (of a group of
    pods: the group) in the LocalQueue, from 1; None is not known. `why` is what Kueue says of the one that
    waits, `eviction` why pods that ran were ended.
    """

    queue: str
    state: str
    waiting: int = 0
    position: int | None = None
    why: str = ""
    eviction: str = ""

    @classmethod
    def from_json(cls, data: Json | None) -> QueueState | None:
        return cls(**data) if data else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_waiting(self) -> bool:
        return self.state in (PENDING, EVICTED)

    @property
    def is_ignored(self) -> bool:
        return self.state == IGNORED

    def after(self, before: QueueState | None) -> QueueState:
        """Keep the eviction that was observed before while its pods wait again."""
        if self.state != PENDING or before is None or before.state != EVICTED:
            return self
        return replace(self, state=EVICTED, eviction=before.eviction)

    @property
    def message(self) -> str:
        if self.is_ignored:
            return f"Kueue does not manage its pods, so queue {self.queue} has no effect"
        if not self.is_waiting:
            return f"admitted by queue {self.queue}"
        pods = "1 pod waits" if self.waiting == 1 else f"{self.waiting} pods wait"
        place = "position not known" if self.position is None else f"position {self.position}"
        text = f"{pods} in queue {self.queue}, {place}"
        if self.eviction:
            text = f"evicted ({self.eviction}); {text}"
        return f"{text}: {self.why}" if self.why else text


def read_pod_queue(
    queue: str, pods: Sequence[Json], workloads: Iterable[Json], positions: Mapping[str, int] | None
) -> QueueState | None:
    """Return the state of pods. `workloads` are all of the namespace, `positions` from 0 by the name of a
    Workload; None means not known. None without pods, which say nothing.
    """
    live = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    gated = [pod for pod in live if queues.is_gated(pod)]
    eviction = next((text for pod in pods if (text := _eviction(pod))), "")
    if not live:
        return QueueState(queue, EVICTED, eviction=eviction) if eviction else None
    if not gated:
        return QueueState(queue, ADMITTED if all(map(_is_managed, live)) else IGNORED)
    own = [workload for workload in workloads if _is_of(workload, gated)]
    eviction = eviction or next((text for one in own if (text := _evicted(one))), "")
    known = (
        [positions[one["metadata"]["name"]] for one in own if one["metadata"]["name"] in positions]
        if positions
        else []
    )
    return QueueState(
        queue,
        EVICTED if eviction else PENDING,
        waiting=len(gated),
        position=min(known) + 1 if known else None,
        why=next((text for one in own if (text := _why(one))), ""),
        eviction=eviction,
    )


def read_job_queue(
    queue: str, jobs: Sequence[Json], workloads: Iterable[Json], positions: Mapping[str, int] | None
) -> QueueState | None:
    """Return the state of Jobs, each with one Workload for all of its pods. `positions` as in `of_pods`. None
    if no Job is suspended, so all were admitted.
    """
    waiting = list_suspended(jobs)
    if not waiting:
        return None
    own = [workload for workload in workloads if _is_of(workload, waiting)]
    eviction = next((text for one in own if (text := _evicted(one))), "")
    names = [one["metadata"]["name"] for one in own if one["metadata"]["name"] in (positions or {})]
    why = next((text for one in own if (text := _why(one))), "")
    return QueueState(
        queue,
        EVICTED if eviction else PENDING,
        waiting=sum(int(job["spec"].get("parallelism", 1)) for job in waiting),
        position=min((positions or {})[name] for name in names) + 1 if names else None,
        why=why if own else _NO_WORKLOAD,
        eviction=eviction,
    )


def list_suspended(jobs: Sequence[Json]) -> list[Json]:
    """Return jobs that are not admitted."""
    return [job for job in jobs if (job.get("spec") or {}).get("suspend")]


def _is_managed(pod: Json) -> bool:
    metadata = pod["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return labels.get(_MANAGED) == "true" or _PARENT in annotations


def _is_of(workload: Json, pods: Sequence[Json]) -> bool:
    """Return whether the Workload belongs to one of the pods: its owner is a pod, or pods of a group name it."""
    metadata = workload["metadata"]
    owners = {owner.get("uid") for owner in metadata.get("ownerReferences") or ()}
    return any(
        pod["metadata"].get("uid") in owners or _prebuilt(pod) == metadata["name"] for pod in pods
    )


def _prebuilt(pod: Json) -> str:
    metadata = pod["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return str(labels.get(_PREBUILT) or annotations.get(_PREBUILT) or "")


def _eviction(pod: Json) -> str:
    """Say why Kueue ends the pod. Empty for others."""
    condition = _condition(pod, _TERMINATION)
    if condition.get("status") != "True" or "deletionTimestamp" not in pod["metadata"]:
        return ""
    return str(condition.get("message") or condition.get("reason") or "no reason given")


def _evicted(workload: Json) -> str:
    condition = _condition(workload, "Evicted")
    if condition.get("status") != "True":
        return ""
    return str(condition.get("message") or condition.get("reason") or "no reason given")


def _why(workload: Json) -> str:
    """Say why no quota is reserved for the Workload, or an admission check holds it. Empty if neither."""
    for name in ("QuotaReserved", "Admitted"):
        condition = _condition(workload, name)
        if condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason") or "")
    return ""


def _condition(item: Json, name: str) -> Json:
    conditions: Iterable[Json] = (item.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == name), {})
