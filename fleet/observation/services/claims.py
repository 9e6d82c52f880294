"""Rows of ResourceClaims, and the devices that pods hold by them. A device has one holder at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Final

from fleet.gpus.domain import devices, shares
from fleet.gpus.domain.claimed_gpus import ClaimedDevice
from fleet.gpus.domain.devices import Device
from fleet.models import Cluster, DeviceClaim, Node
from fleet.observation.domain.dra import Allocated, ObservedClaim
from fleet.observation.services import claimable

_OBSERVED: Final = ("resource_version", "namespace", "name", "pod_uid", "pod_name")
_COLUMNS: Final = (*_OBSERVED, "held_since", "allocated")


def write(
    cluster: Cluster, observed: Sequence[ObservedClaim], gone: Collection[str], *, at: datetime
) -> set[str]:
    """Write claims. `gone` are UIDs of claims that are deleted or hold nothing. Returns the UIDs of pods that hold
    more.
    """
    uids = [one.uid for one in observed]
    rows = {row.uid: row for row in DeviceClaim.objects.filter(cluster=cluster, uid__in=uids)}
    new: list[DeviceClaim] = []
    changed: list[DeviceClaim] = []
    for one in {item.uid: item for item in observed}.values():
        row = rows.get(one.uid) or DeviceClaim(cluster=cluster, uid=one.uid)
        if row.pk and one.resource_version <= row.resource_version:
            continue
        if row.pod_uid and row.pod_uid != one.pod_uid:
            row.held_since = at
        for column in _OBSERVED:
            setattr(row, column, getattr(one, column))
        row.allocated = [asdict(part) for part in one.allocated]
        (changed if row.pk else new).append(row)
    DeviceClaim.objects.bulk_create(new)
    DeviceClaim.objects.bulk_update(changed, _COLUMNS)
    if gone:
        DeviceClaim.objects.filter(cluster=cluster, uid__in=gone).delete()
    return {row.pod_uid for row in (*new, *changed) if row.pod_uid}


def delete_missing(cluster: Cluster, version: int, observed: Iterable[ObservedClaim]) -> None:
    """Delete rows that are missing from a listing, unless they are newer than it."""
    rows = DeviceClaim.objects.filter(cluster=cluster)
    if version:
        rows = rows.filter(resource_version__lte=version)
    rows.exclude(uid__in=[one.uid for one in observed]).delete()


def holders(cluster: Cluster) -> set[str]:
    """Return the UIDs of all pods that hold a claim."""
    rows = DeviceClaim.objects.filter(cluster=cluster).exclude(pod_uid="")
    return set(rows.values_list("pod_uid", flat=True))


def read_claimed_devices(
    cluster: Cluster, pod_uids: Collection[str]
) -> dict[str, list[ClaimedDevice]]:
    """Return the devices that pods hold by claim, by pod UID. Pods without a known device are left out."""
    if not pod_uids:
        return {}
    rows = list(DeviceClaim.objects.filter(cluster=cluster, pod_uid__in=pod_uids).order_by("pk"))
    if not rows:
        return {}
    pools = {part["pool"] for row in rows for part in row.allocated}
    known = claimable.devices_in(cluster, pools)
    held: dict[str, list[ClaimedDevice]] = defaultdict(list)
    for row in rows:
        for part in (Allocated(**stored) for stored in row.allocated):
            if (part.pool, part.device) in known:
                device, node = known[part.pool, part.device]
                held[row.pod_uid].append(_held(part, device, node, row.held_since))
    return held


def _held(part: Allocated, device: Device, node: Node, since: datetime | None) -> ClaimedDevice:
    ppm = shares.device_ppm(device, shares.read_node(node))
    if part.memory_mib is not None and device.memory_mib:
        ppm = min(ppm, ppm * part.memory_mib // device.memory_mib)
    return ClaimedDevice(
        pool=part.pool,
        device=part.device,
        resource=devices.resource_of(device),
        ppm=ppm,
        since=since.isoformat() if since else "",
    )
