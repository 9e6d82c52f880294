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
