"""GPUs by ResourceClaim: the real API server admits them, the real scheduler allocates devices of a driver's slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from deployments.manifests.domain import resource_limits
from deployments.manifests.domain.metadata import Manifest, ManifestContext
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import Placement
from fleet.capacity.selectors import node_devices, node_spaces
from fleet.clusters.services import capabilities
from fleet.gpus.domain import devices
from fleet.kube.domain import resource_types
from fleet.kube.services import clients, objects
from fleet.models import GpuLease, Node
from fleet.observation.services import sweep, workloads
from portal.accounts.policy import SYSTEM
from tests.accounts import make_team
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import ready_node
from tests.cluster.test_scheduling import pods_of, revision_of
from tests.cluster.waiting import wait_until
from tests.waiting import PATIENCE_SECONDS

DRIVER: Final = "gpu.nvidia.com"
_PRODUCT: Final = "NVIDIA A100-SXM4-80GB"


def device_class(name: str, kind: str) -> Manifest:
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def device(name: str, kind: str, memory: str, **attributes: str) -> dict[str, Any]:
    texts = {"type": kind, "productName": _PRODUCT, **attributes}
    return {
        "name": name,
        "attributes": {key: {"string": value} for key, value in texts.items()},
        "capacity": {"memory": {"value": memory}},
    }


def _slice(node: str) -> Manifest:
    """What the driver publishes of a node: two GPUs, one of them cut."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{DRIVER}"[-63:].strip("-.")},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                device("gpu-0", "gpu", "80Gi"),
                device("gpu-1-mig-1g10gb-0", "mig", "9856Mi", profile="1g.10gb"),
                device("gpu-1-mig-2g20gb-1", "mig", "19968Mi", profile="2g.20gb"),
            ],
        },
    }


@contextmanager
def claimable(admin: Kubectl, name: str) -> Iterator[str]:
    """A node whose GPUs a driver publishes, and no device plugin offers."""
    classes = [device_class("gpu.nvidia.com", "gpu"), device_class("mig.nvidia.com", "mig")]
    with ready_node(admin, name, accelerators={}) as node:
        admin.apply([*classes, _slice(node)])
        try:
            yield node
        finally:
            admin.run("delete", "resourceslice", _slice(node)["metadata"]["name"])
            for made in classes:
                admin.run("delete", "deviceclass", made["metadata"]["name"])


def _manifests(context: ManifestContext, engine: str, **fields: Any) -> list[Manifest]:
    resource = fields.pop("gpu_resource", "nvidia.com/gpu")
    placement = Placement(device_claims=True, **fields)
    return revision_of(context, engine, placement=placement, gpu_resource=resource)


@pytest.mark.parametrize(
    ("engine", "fields", "device"),
    [
        (serving_spec.TRITON, {"claim_product": _PRODUCT, "claim_memory_gib": 40}, "gpu-0"),
        (serving_spec.KSERVE_TRITON, {}, "gpu-0"),
        (serving_spec.KSERVE_VLLM, {}, "gpu-0"),
        (serving_spec.LLM_SERVICE, {}, "gpu-0"),
        (serving_spec.TRITON, {"gpu_resource": "nvidia.com/mig-2g.20gb"}, "gpu-1-mig-2g20gb-1"),
    ],
)
def test_a_pod_gets_the_device_that_its_claim_selects(
    cluster_id: int,
    context: ManifestContext,
    admin: Kubectl,
    journey: Callable[[str], None],
    engine: str,
    fields: dict[str, Any],
    device: str,
) -> None:
    namespace = context.namespace
    with claimable(admin, f"gpu-{namespace}"[:60]) as node:
        found = capabilities.probe(cluster_id=cluster_id)
        assert found.feature("device-claims").is_there
        assert found.feature("mig-claims").is_there
        objects.apply(cluster_id=cluster_id, manifests=_manifests(context, engine, **fields))
        objects.apply(
            cluster_id=cluster_id, manifests=resource_limits.limit_namespace(context, quota_gpus=4)
        )
        wait_until(
            lambda: [p["spec"].get("nodeName") for p in pods_of(cluster_id, namespace)] == [node],
            lambda: admin.run("get", "events,pods,resourceclaims", f"--namespace={namespace}"),
        )
        (pod,) = pods_of(cluster_id, namespace)
        (status,) = pod["status"]["resourceClaimStatuses"]
        claim = admin.get("resourceclaim", status["resourceClaimName"], f"--namespace={namespace}")

    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["device"], result["pool"]) == (DRIVER, device, node)
    assert pod["metadata"]["labels"]["slipway.dev/claimed-gpus"].startswith("nvidia.com_")
    journey(f"{engine}: {device} allocated by a ResourceClaim")


def test_the_fleet_knows_the_devices_and_who_holds_them(
    cluster_id: int, context: ManifestContext, admin: Kubectl, journey: Callable[[str], None]
) -> None:
    """With the permissions of the portal alone: what the driver publishes, what the scheduler allocated, what is left."""
    namespace = context.namespace
    team = make_team(slug=namespace)
    workloads.register(
        cluster_id=cluster_id,
        team=team,
        namespace=namespace,
        name=f"{context.deployment}-r1",
        labels={"deployment": context.deployment},
        triton_models=[],
    )
    client = clients.client_for(cluster_id)
    before = client.list_all(resource_types.RESOURCE_CLAIM).resource_version
    with claimable(admin, f"gpu-{namespace}"[:60]) as name:
        objects.apply(cluster_id=cluster_id, manifests=_manifests(context, serving_spec.TRITON))
        wait_until(
            lambda: [p["spec"].get("nodeName") for p in pods_of(cluster_id, namespace)] == [name],
            lambda: admin.run("get", "events,pods,resourceclaims", f"--namespace={namespace}"),
        )

        sweep.observe_now(cluster_id=cluster_id)

        watched = client.watch(
            resource_types.RESOURCE_CLAIM, resource_version=before, seconds=PATIENCE_SECONDS
        )
        seen = next(e for e in watched if e.object["metadata"]["namespace"] == namespace)
        (pod,) = pods_of(cluster_id, namespace)
        node = Node.objects.get(name=name)
        [lease] = GpuLease.objects.filter(node=node, ended_at=None)
        (space,) = [s for s in node_spaces.list_spaces(cluster_id) if s.node == node]
        found = node_devices.read_node_devices(node, actor=SYSTEM)

    assert seen.type == "ADDED"
    assert (node.gpu_count, node.gpu_product, node.gpu_memory_mib) == (2, _PRODUCT, 80 * 1024)
    assert (lease.pod_uid, lease.team_slug, lease.share_ppm) == (
        pod["metadata"]["uid"],
        namespace,
        1_000_000,
    )
    assert {row.device.name: row.is_free for row in found.rows} == {
        "gpu-0": False,
        "gpu-1-mig-1g10gb-0": True,
        "gpu-1-mig-2g20gb-1": True,
    }
    [holder] = found.rows[0].holders
    assert (holder.pod_name, holder.deployment) == (pod["metadata"]["name"], context.deployment)
    free = [
        space.free_devices(devices.request_of(f"nvidia.com/{n}")) for n in ("gpu", "mig-1g.10gb")
    ]
    assert free == [0, 1]
    journey("ResourceSlices and claims: devices, holder, lease and what is free are known")


@pytest.mark.usefixtures("context")
def test_without_the_drivers_classes_claims_are_not_offered(cluster_id: int) -> None:
    found = capabilities.probe(cluster_id=cluster_id)

    assert found.feature("device-claims").is_there is False
    assert found.feature("device-claims").why == "The cluster has no DeviceClass gpu.nvidia.com"


def test_a_device_that_nobody_has_is_waited_for(
    cluster_id: int, context: ManifestContext, admin: Kubectl
) -> None:
    namespace = context.namespace
    manifests = _manifests(context, serving_spec.TRITON, claim_memory_gib=100)
    with claimable(admin, f"gpu-{namespace}"[:60]):
        objects.apply(cluster_id=cluster_id, manifests=manifests)
        wait_until(
            lambda: any(
                "cannot allocate all claims" in condition.get("message", "")
                for pod in pods_of(cluster_id, namespace)
                for condition in pod["status"].get("conditions") or []
            ),
            lambda: admin.run("get", "events,pods", f"--namespace={namespace}"),
        )
