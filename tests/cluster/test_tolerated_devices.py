"""A GPU that its driver tainted: the real scheduler gives it to a claim of the portal that tolerates the taint, and to no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from deployments.manifests.domain.metadata import Manifest, ManifestContext
from deployments.preflight.services import capacity_checks
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import Placement, ServingSpec
from fleet.capacity.selectors import fit, node_spaces
from fleet.clusters.services import capabilities
from fleet.kube.services import objects
from fleet.models import Node
from fleet.observation.services import sweep
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import ready_node
from tests.cluster.test_device_claims import DRIVER, device, device_class
from tests.cluster.test_scheduling import pods_of, revision_of
from tests.cluster.waiting import wait_until

_TOLERATED: Final = "example.com/slow=1:NoSchedule"
_TAINT: Final = {"key": "example.com/slow", "value": "1", "effect": "NoSchedule"}


@contextmanager
def tainted(admin: Kubectl, name: str) -> Iterator[str]:
    """A node with one GPU, which its driver tainted."""
    gpu = {**device("gpu-0", "gpu", "80Gi"), "taints": [_TAINT]}
    made: Manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-slow"[-63:].strip("-.")},
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [gpu],
        },
    }
    with ready_node(admin, name, accelerators={}) as node:
        admin.apply([device_class("gpu.nvidia.com", "gpu"), made])
        try:
            yield node
        finally:
            admin.run("delete", "resourceslice", made["metadata"]["name"])
            admin.run("delete", "deviceclass", "gpu.nvidia.com")


def _spec_of(node: str, tolerations: str) -> ServingSpec:
    placement = Placement(device_claims=True, claim_tolerations=tolerations)
    instance_type = Node.objects.get(name=node).instance_type
    return ServingSpec(engine="triton", instance_type=instance_type, placement=placement)


def _fits(cluster_id: int, node: str, tolerations: str) -> bool:
    size = capacity_checks.replica_size(_spec_of(node, tolerations))
    return fit.fits_now(node_spaces.list_spaces(cluster_id), size=size, replicas=1).ok


def _manifests(context: ManifestContext, **placement: Any) -> list[Manifest]:
    claims = Placement(device_claims=True, **placement)
    return revision_of(context, serving_spec.TRITON, placement=claims)


def _placed(cluster_id: int, namespace: str) -> list[tuple[str, str]]:
    """Of each pod its node, and why it has none."""
    return [
        (
            pod["spec"].get("nodeName", ""),
            next(
                (one.get("message", "") for one in pod["status"].get("conditions", ())),
                "",
            ),
        )
        for pod in pods_of(cluster_id, namespace)
    ]


def test_a_claim_gets_the_tainted_device_that_it_tolerates_and_no_other_does(
    cluster_id: int, context: ManifestContext, admin: Kubectl, journey: Callable[[str], None]
) -> None:
    namespace = context.namespace

    def state() -> str:
        return admin.run("get", "events,pods,resourceclaims", f"--namespace={namespace}")

    with tainted(admin, f"gpu-{namespace}"[:60]) as node:
        found = capabilities.probe(cluster_id=cluster_id).feature("device-tolerations")
        objects.apply(cluster_id=cluster_id, manifests=_manifests(context))
        # The scheduler's words for a claim that no device is left for.
        wait_until(
            lambda: any("cannot allocate" in why for _, why in _placed(cluster_id, namespace)),
            state,
        )
        assert {name for name, _ in _placed(cluster_id, namespace)} == {""}
        sweep.observe_now(cluster_id=cluster_id)
        free = [_fits(cluster_id, node, tolerations) for tolerations in ("", _TOLERATED)]

        tolerant = _manifests(context, claim_tolerations=_TOLERATED)
        objects.apply(cluster_id=cluster_id, manifests=tolerant)

        wait_until(
            lambda: node in {name for name, _ in _placed(cluster_id, namespace)},
            state,
        )
        claims = admin.get("resourceclaims", f"--namespace={namespace}")["items"]
        sweep.observe_now(cluster_id=cluster_id)
        after = _fits(cluster_id, node, _TOLERATED)

    assert found.is_there is True
    assert free == [False, True]
    assert after is False, "it is held now"
    allocated = [claim for claim in claims if (claim.get("status") or {}).get("allocation")]
    (result,) = allocated[0]["status"]["allocation"]["devices"]["results"]
    assert (len(allocated), result["device"], result["pool"]) == (1, "gpu-0", node)
    journey(f"{node}: a tainted device allocated to a claim that tolerates {_TOLERATED}")
