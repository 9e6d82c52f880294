"""What kubelets, controllers and gateways report of a deployment, written by an administrator.

Where no controller makes pods, as on the embedded server of this suite, the one that the Deployment
describes is made here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from deployments.models import Deployment
from fleet.kube.domain import resource_types
from fleet.kube.services import clients
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import ready_node
from tests.cluster.waiting import wait_until
from tests.contract import account
from tests.contract.conftest import named_cluster
from tests.contract.delivered import Delivered

IMAGE = "nvcr.io/nvidia/tritonserver:26.07-py3"
_STATUS = "--subresource=status"
needs_administrator = pytest.mark.skipif(
    named_cluster() is not None and account.administrator() is None,
    reason="writes what kubelets report, as an administrator of a cluster without any",
)


@pytest.fixture
def node(somebody: Kubectl, delivered: Delivered) -> Iterator[str]:
    is_real = named_cluster() is not None
    name = delivered.namespace[:60]
    with ready_node(somebody, name) if is_real else nullcontext(name) as made:
        yield made


def pods_of(delivered: Delivered, workload: str = "") -> list[dict[str, Any]]:
    """Of one workload, or of the whole namespace."""
    client = clients.client_for(delivered.world.cluster_id)
    pods = client.list_all(resource_types.POD, namespace=delivered.namespace).items
    return [pod for pod in pods if pod["metadata"]["name"].startswith(workload)]


def bound_pod(delivered: Delivered, somebody: Kubectl, workload: str, node: str = "") -> str:
    """The name of the one pod of the workload; bound to the node."""
    if named_cluster() is None:
        template = delivered.get("apps/v1", "Deployment", workload)["spec"]["template"]
        metadata = {
            **template["metadata"],
            "name": f"{workload}-0",
            "namespace": delivered.namespace,
        }
        spec = {**template["spec"], "nodeName": node} if node else template["spec"]
        somebody.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])

    def is_there() -> bool:
        pods = pods_of(delivered, workload)
        return bool(pods) and pods[0]["spec"].get("nodeName", "") == node

    wait_until(is_there, lambda: pods_of(delivered))
    return str(pods_of(delivered, workload)[0]["metadata"]["name"])


def report(delivered: Delivered, somebody: Kubectl, pod: str, status: dict[str, Any]) -> None:
    where = f"--namespace={delivered.namespace}"
    somebody.patch("pod", pod, where, "--subresource=status", patch={"status": status})


def container_status(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    conditions = [{"type": "PodScheduled", "status": "True"}]
    fields = {"name": "triton", "image": IMAGE, "imageID": "", "ready": False, "restartCount": 0}
    status = {**fields, "state": state, **more}
    return {"phase": "Pending", "conditions": conditions, "containerStatuses": [status]}


def make_ready(delivered: Delivered, somebody: Kubectl, node: str, deployment: Deployment) -> None:
    """Its one pod is ready and the gateway follows its route; so its request is done."""
    make_pod_ready(delivered, somebody, node, f"{deployment.name}-r1")
    delivered.reconcile_now(deployment)
    accept_route(delivered, somebody, deployment.name)
    delivered.reconcile_now(deployment)
    assert deployment.state == "ready", deployment.state_reason


def make_pod_ready(delivered: Delivered, somebody: Kubectl, node: str, workload: str) -> None:
    """The one pod of the workload, on the node."""
    now = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    running = container_status({"running": {"startedAt": now}}, ready=True, started=True)
    status = {**running, "phase": "Running", "conditions": conditions}
    report(delivered, somebody, bound_pod(delivered, somebody, workload, node), status)
    if named_cluster() is None:
        counts = dict.fromkeys(
            ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), 1
        )
        available = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}
        status = {**counts, "observedGeneration": 1, "conditions": [available]}
        where = f"--namespace={delivered.namespace}"
        somebody.patch("deployment", workload, where, _STATUS, patch={"status": status})
    wait_until(
        lambda: _is_available(delivered, workload),
        lambda: delivered.get("apps/v1", "Deployment", workload),
    )


def _is_available(delivered: Delivered, workload: str) -> bool:
    live = delivered.get("apps/v1", "Deployment", workload)
    conditions = live.get("status", {}).get("conditions", [])
    return any(one["type"] == "Available" and one["status"] == "True" for one in conditions)


def accept_route(delivered: Delivered, somebody: Kubectl, name: str) -> None:
    """As a gateway does that follows the route as it is now."""
    route = delivered.get("gateway.networking.k8s.io/v1", "HTTPRoute", name)
    condition = {
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": route["metadata"]["generation"],
    }
    parent = {
        "parentRef": route["spec"]["parentRefs"][0],
        "controllerName": "example.com/gateway",
        "conditions": [{**condition, "type": kind} for kind in ("Accepted", "ResolvedRefs")],
    }
    where = f"--namespace={delivered.namespace}"
    somebody.patch("httproute", name, where, _STATUS, patch={"status": {"parents": [parent]}})
