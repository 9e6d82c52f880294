"""A crash without a message in the pod's status is explained by the log, or by the probe's event."""

from __future__ import annotations

from typing import Any

from tests.deployments.world import World


def crash(world: World, exit_code: int) -> None:
    labels = {
        "slipway.dev/deployment-id": str(_deployment(world).pk),
        "slipway.dev/revision": "1",
        "slipway.dev/workload": "detector-r1",
    }
    ended = {"terminated": {"exitCode": exit_code}}
    status: dict[str, Any] = {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": "server",
                "restartCount": 2,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": ended,
            }
        ],
    }
    world.cluster.put_pod("vision", "detector-r1-0", labels, status)


def _deployment(world: World) -> Any:
    from deployments.models import Deployment

    return Deployment.objects.get()


def test_a_crash_without_a_message_is_explained_by_the_log(world: World) -> None:
    deployment = world.serving()
    world.cluster.logs["detector-r1-0"] = (
        "I0101 server.cc] starting\nE0101 failed to load 'detector' version 1: bad shape\nexiting\n"
    )
    crash(world, 1)

    world.reconcile_now(deployment)

    assert deployment.state == "degraded"
    assert "failed to load 'detector' version 1: bad shape" in deployment.state_reason


def test_a_container_killed_by_a_probe_is_explained_by_the_event(world: World) -> None:
    deployment = world.serving()
    world.cluster.objects["Event", "vision", "e1"] = {
        "metadata": {"name": "e1", "namespace": "vision"},
        "reason": "Unhealthy",
        "involvedObject": {"name": "detector-r1-0"},
        "message": "Liveness probe failed: connection refused",
    }
    crash(world, 137)

    world.reconcile_now(deployment)

    assert "Liveness probe failed: connection refused" in deployment.state_reason
