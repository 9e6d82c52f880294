"""The devices that nodes offer by claim, and which claim holds each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.capacity.domain.overview import OTHER_TEAM
from fleet.gpus.domain import device_taints, devices
from fleet.gpus.domain.device_taints import DeviceTaint
from fleet.gpus.domain.devices import Device
from fleet.models import DeviceClaim, Node, Pod
from portal.accounts import policy
from portal.accounts.policy import Actor


@dataclass(frozen=True, slots=True)
class DeviceHolder:
    """Pod, claim and workload are empty for pods of teams that the reader does not see."""

    is_visible: bool
    team_slug: str = ""
    namespace: str = ""
    claim: str = ""
    pod_name: str = ""
    workload_id: int | None = None
    deployment: str = ""

    @property
    def label(self) -> str:
        if not self.is_visible:
            return OTHER_TEAM
        return self.deployment or self.pod_name or self.claim


@dataclass(frozen=True, slots=True)
class NodeDevice:
    """`is_free` None: not known. A device without a holder may not be free: its counters are used, it has taints, or
    its driver took it away.
    """

    device: Device
    holders: tuple[DeviceHolder, ...]
    is_free: bool | None
    taints: tuple[DeviceTaint, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of a node. `read_at` is None if claims are not readable, so that what is free is unknown."""

    rows: tuple[NodeDevice, ...]
    read_at: datetime | None


def read_claims_by_device(cluster_id: int) -> dict[tuple[str, str], list[DeviceClaim]]:
    """Return the claims that hold each device, by pool and name. Several may share one."""
    held: dict[tuple[str, str], list[DeviceClaim]] = {}
    for claim in DeviceClaim.objects.filter(cluster_id=cluster_id).order_by("namespace", "name"):
        for part in claim.allocated:
            held.setdefault((part["pool"], part["device"]), []).append(claim)
    return held


def read_node_devices(node: Node, *, actor: Actor) -> NodeDevices:
    offered, read_at = devices.from_json(node.claimable), node.cluster.devices_read_at
    if not offered.all:
        return NodeDevices((), read_at)
    held = read_claims_by_device(node.cluster_id)
    own = {device.key for device in offered.all}
    claims = [claim for key, of_key in held.items() if key in own for claim in of_key]
    seen = _holders(node, claims, actor)
    taints = device_taints.map_taints(device_taints.from_json(node.tainted_gpus))
    return NodeDevices(
        tuple(
            NodeDevice(
                device,
                tuple(seen[claim.pk] for claim in held.get(device.key, ())),
                offered.has_free(device, held.keys()) if read_at else None,
                taints.get(device.key, ()),
            )
            for device in offered.all
        ),
        read_at,
    )


def _holders(node: Node, claims: list[DeviceClaim], actor: Actor) -> dict[int, DeviceHolder]:
    """Return who holds each device claim, by the claim's id."""
    uids = [claim.pod_uid for claim in claims if claim.pod_uid]
    pods: dict[str, Any] = {
        pod.uid: pod
        for pod in Pod.objects.filter(cluster_id=node.cluster_id, uid__in=uids).select_related(
            "workload__team"
        )
    }
    sees_all = policy.sees_all(actor)
    slugs = set() if sees_all else set(policy.visible_teams(actor).values_list("slug", flat=True))
    return {
        claim.pk: _holder(claim, pods.get(claim.pod_uid), None if sees_all else slugs)
        for claim in claims
    }


def _holder(claim: DeviceClaim, pod: Pod | None, slugs: set[str] | None) -> DeviceHolder:
    """Return the holder of a claim. `slugs` None means that all teams are visible."""
    workload = pod.workload if pod else None
    team = workload.team.slug if workload else ""
    if team and slugs is not None and team not in slugs:
        return DeviceHolder(is_visible=False)
    return DeviceHolder(
        is_visible=True,
        team_slug=team,
        namespace=claim.namespace,
        claim=claim.name,
        pod_name=claim.pod_name,
        workload_id=workload.pk if workload else None,
        deployment=str(workload.labels.get("deployment", "")) if workload else "",
    )
