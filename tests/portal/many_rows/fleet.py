"""Actions, office hours, pools, groups and node classes of a cluster; nodes that are gone, pods, claimed devices, prices."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

from fleet.actions.domain.states import ActionState
from fleet.gpus.domain import devices
from fleet.gpus.domain.devices import Device, Devices
from fleet.models import (
    Cluster,
    DeviceClaim,
    DeviceSlice,
    FleetAction,
    InstancePrice,
    Node,
    Pod,
    PoolOfficeHours,
    Workload,
)
from fleet.office_hours.domain.hours import DAYS
from portal.core import clock
from tests.portal.api.full_world import FullWorld
from tests.portal.many_rows.copies import copies

_HOURS = {
    "timezone": "UTC",
    "days": {key: ["08:00", "18:00"] for key in DAYS[:5]},
    "closed_size": 0,
}


def fill(full: FullWorld, scale: float) -> None:
    now = clock.now()
    action = FleetAction.objects.get(pk=full.names["action_id"])
    node = Node.objects.get(pk=full.names["node_id"])
    states = [ActionState.DONE, ActionState.FAILED, ActionState.REJECTED]
    copies(
        action,
        500 * scale,
        target=lambda n: f"node-{n}",
        state=lambda n: states[n % len(states)],
        created_at=lambda n: now - timedelta(hours=n),
        finished_at=lambda n: now - timedelta(hours=n),
    )
    copies(
        action,
        100 * scale,
        node_id=lambda _: node.pk,
        target=lambda _: node.name,
        state=lambda _: ActionState.DONE,
        finished_at=lambda n: now - timedelta(hours=n),
    )
    copies(action, 50 * scale, target=lambda n: f"waits-{n}", state=lambda _: ActionState.SUBMITTED)
    copies(
        node,
        300 * scale,
        name=lambda n: f"gone-{n}",
        uid=lambda n: f"gone-{n}",
        gone_at=lambda n: now - timedelta(hours=n),
        is_ready=lambda _: False,
    )
    _pools(full, scale)
    _pods(full, scale, node)
    _devices(full, scale, node)
    price = InstancePrice.objects.filter(instance_type="g5.xlarge", region="us-east-1").order_by(
        "pk"
    )[0]
    copies(price, 100 * scale, valid_from=lambda n: price.valid_from - timedelta(days=n))


def _pools(full: FullWorld, scale: float) -> None:
    cluster = full.world.cluster
    hours = PoolOfficeHours(
        cluster_id=full.world.cluster_id,
        target_kind="node-pool",
        target="gpu",
        hours=_HOURS,
        created_at=clock.now(),
    )
    hours.save()
    copies(hours, 60 * scale, target=lambda n: f"gpu-{n}")
    for number in range(round(60 * scale)):
        for kind in ("NodePool", "EC2NodeClass"):
            made = copy.deepcopy(_OBJECTS[kind])
            made["metadata"]["name"] = f"gpu-{number}" if number else "gpu"
            cluster.objects[kind, "", made["metadata"]["name"]] = made


def _devices(full: FullWorld, scale: float, node: Node) -> None:
    """The node offers this many, and each is claimed by a pod of nobody."""
    cluster = {"cluster_id": full.world.cluster_id}
    offered = [
        Device(f"gpu-{n}", node.name, devices.GPU, f"gpu-{n}") for n in range(round(60 * scale))
    ]
    node.claimable = Devices(tuple(offered)).to_json()
    node.save(update_fields=["claimable"])
    DeviceSlice.objects.bulk_create(
        DeviceSlice(uid=f"slice-{one.name}", node_name="elsewhere", pool="elsewhere", **cluster)
        for one in offered
    )
    DeviceClaim.objects.bulk_create(
        DeviceClaim(
            uid=f"claim-{one.name}",
            namespace="lab",
            name=f"claim-{one.name}",
            pod_uid=f"pod-{one.name}",
            pod_name=f"pod-{one.name}",
            allocated=[{"pool": one.pool, "device": one.name}],
            **cluster,
        )
        for one in offered
    )
    Cluster.objects.filter(pk=full.world.cluster_id).update(devices_read_at=clock.now())


def _pods(full: FullWorld, scale: float, node: Node) -> None:
    workload = Workload.objects.filter(
        team=full.world.team, name=f"{full.deployment.name}-r1"
    ).get()
    pod = Pod.objects.create(
        cluster_id=full.world.cluster_id,
        workload=workload,
        node=node,
        node_name=node.name,
        namespace=workload.namespace,
        name=f"{workload.name}-0",
        uid="pod-of-detector",
        phase="Running",
        is_ready=True,
        gpu_resource="nvidia.com/gpu",
        gpu_units=1,
        scheduled_at=clock.now(),
        ready_at=clock.now(),
        start_seconds={"schedule": 2, "image": 30, "start": 5, "load": 20},
        created_at=clock.now(),
    )
    copies(
        pod, 50 * scale, name=lambda n: f"{workload.name}-{n}", uid=lambda n: f"pod-{n}-detector"
    )


_OBJECTS: dict[str, dict[str, Any]] = {
    "NodePool": {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu", "generation": 1, "resourceVersion": "1"},
        "spec": {
            "template": {
                "metadata": {"labels": {"slipway.dev/pool": "gpu"}},
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": "gpu",
                    },
                    "requirements": [
                        {
                            "key": "node.kubernetes.io/instance-type",
                            "operator": "In",
                            "values": ["g5.xlarge", "g5.48xlarge"],
                        },
                        {
                            "key": "karpenter.sh/capacity-type",
                            "operator": "In",
                            "values": ["on-demand", "spot"],
                        },
                    ],
                },
            },
            "limits": {"nvidia.com/gpu": "64"},
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "5m",
            },
        },
        "status": {
            "resources": {"nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    },
    "EC2NodeClass": {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "gpu", "generation": 1, "resourceVersion": "1"},
        "spec": {
            "role": "KarpenterNodeRole",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "x"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "x"}}],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    },
}
