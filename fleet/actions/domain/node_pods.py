"""Which pods of a node a drain evicts: as `kubectl drain` decides, from the objects that the cluster lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_MIRROR: Final = "kubernetes.io/config.mirror"
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class NodePod:
    """A pod on a node. `controller` is the kind of its controlling owner; empty: nothing would start it elsewhere."""

    namespace: str
    name: str
    uid: str
    controller: str
    is_mirror: bool
    is_finished: bool
    is_terminating: bool
    # Karpenter does not move it, which its team declared.
    is_kept: bool = False

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def stays(self) -> bool:
        """The kubelet runs static pods itself, a DaemonSet starts its pods again on a cordoned node, and a
        finished pod holds nothing.
        """
        return self.is_mirror or self.is_finished or self.controller == "DaemonSet"


@dataclass(frozen=True, slots=True)
class NodePods:
    """The pods of one node: those to evict, those already terminating, and those that would not come back."""

    to_evict: tuple[NodePod, ...]
    terminating: tuple[NodePod, ...]

    @property
    def remaining(self) -> int:
        return len(self.to_evict) + len(self.terminating)

    @property
    def unmanaged(self) -> tuple[NodePod, ...]:
        return tuple(pod for pod in self.to_evict if not pod.controller)

    @property
    def kept(self) -> tuple[NodePod, ...]:
        return tuple(pod for pod in self.to_evict if pod.is_kept)


def sort_pods(items: Iterable[Mapping[str, Any]]) -> NodePods:
    """Sort the pods of a node by namespace and name."""
    pods = sorted((read_pod(item) for item in items), key=str)
    leaving = [pod for pod in pods if not pod.stays]
    return NodePods(
        to_evict=tuple(pod for pod in leaving if not pod.is_terminating),
        terminating=tuple(pod for pod in leaving if pod.is_terminating),
    )


def read_pod(item: Mapping[str, Any]) -> NodePod:
    metadata = item["metadata"]
    owners = metadata.get("ownerReferences") or ()
    controller = next((owner for owner in owners if owner.get("controller")), None)
    return NodePod(
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata["name"]),
        uid=str(metadata.get("uid", "")),
        controller=str(controller["kind"]) if controller else "",
        is_mirror=_MIRROR in (metadata.get("annotations") or {}),
        is_finished=(item.get("status") or {}).get("phase") in _FINISHED,
        is_terminating="deletionTimestamp" in metadata,
        is_kept=(metadata.get("annotations") or {}).get(_DO_NOT_DISRUPT) == "true",
    )
