"""Why a deployment does not run, in the same sentence on every API server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.kubectl import Kubectl
from tests.cluster.waiting import wait_until
from tests.contract.conftest import named_cluster
from tests.contract.delivered import Delivered, cluster_calls, delivered, moving_clock, world
from tests.contract.reported import (
    IMAGE,
    bound_pod,
    container_status,
    needs_administrator,
    node,
    pods_of,
    report,
)

__all__ = ["cluster_calls", "delivered", "moving_clock", "node", "world"]
_PULL = {
    "waiting": {
        "reason": "ImagePullBackOff",
        "message": f'Back-off pulling image "{IMAGE}": ErrImagePull: {IMAGE}: not found',
    }
}
_CRASH = {
    "waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}
}
_DENIED = (
    'pods "waits-r1-5d8" is forbidden: exceeded quota: none, requested: count/pods=1,pods=1, used: '
    "count/pods=0,pods=0, limited: count/pods=0,pods=0"
)
_ENDED = {
    "terminated": {
        "exitCode": 1,
        "reason": "Error",
        "message": "failed to load 'detector' version 1",
    }
}
pytestmark = needs_administrator


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (
            container_status(_PULL),
            "the image cannot be pulled: the image does not exist under this name and tag: "
            f'Back-off pulling image "{IMAGE}": ErrImagePull: {IMAGE}: not found',
        ),
        (
            container_status(_CRASH, lastState=_ENDED, restartCount=3),
            "the server cannot load the model: failed to load 'detector' version 1",
        ),
    ],
    ids=["pull", "crash"],
)
def test_what_a_kubelet_reports_is_the_reason_of_the_deployment(
    delivered: Delivered, somebody: Kubectl, node: str, status: dict[str, Any], reason: str
) -> None:
    deployment = delivered.deployed("waits")
    report(delivered, somebody, bound_pod(delivered, somebody, "waits-r1", node), status)

    delivered.reconcile_now(deployment)

    assert deployment.state_reason == reason


def test_a_pod_without_a_node_is_named_with_the_schedulers_message(
    delivered: Delivered, somebody: Kubectl
) -> None:
    deployment = delivered.deployed("waits")
    pod = bound_pod(delivered, somebody, "waits-r1")
    message = "no nodes available to schedule pods"
    if named_cluster() is None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        report(delivered, somebody, pod, {"conditions": [{**condition, "message": message}]})
    wait_until(
        lambda: bool(pods_of(delivered)[0].get("status", {}).get("conditions")),
        lambda: pods_of(delivered),
    )

    delivered.reconcile_now(deployment)

    assert deployment.state_reason == f"waiting for a node: {message}"


def test_pods_that_a_quota_refuses_are_named(delivered: Delivered, somebody: Kubectl) -> None:
    where = f"--namespace={delivered.namespace}"
    if named_cluster() is not None:
        somebody.run("create", "quota", "none", where, "--hard=count/pods=0,pods=0")
        wait_until(
            lambda: "used" in somebody.get("quota", "none", where).get("status", {}),
            lambda: somebody.get("quota", where),
        )
    deployment = delivered.deployed("waits")
    if named_cluster() is None:
        # As the ReplicaSet controller of a real server writes it.
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
        status = {"conditions": [{**failure, "message": _DENIED}]}
        subresource = "--subresource=status"
        somebody.patch("deployment", "waits-r1", where, subresource, patch={"status": status})

    def failures() -> list[Any]:
        live = delivered.get("apps/v1", "Deployment", "waits-r1")
        conditions = live.get("status", {}).get("conditions", [])
        return [item for item in conditions if item["type"] == "ReplicaFailure"]

    wait_until(lambda: bool(failures()), failures)
    delivered.reconcile_now(deployment)

    (failure,) = failures()
    assert "exceeded quota: none, requested: count/pods=1,pods=1" in failure["message"]
    assert deployment.state_reason == (
        "the namespace's quota is used up: free some, or have it raised: " + failure["message"]
    )
