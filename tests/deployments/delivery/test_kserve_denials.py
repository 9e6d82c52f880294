"""What the API server refuses to KServe is on KServe's own Deployment, and the page shows it."""

from __future__ import annotations

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.models import Deployment
from deployments.states import DeploymentState
from tests.deployments.world import World

QUOTA = (
    'pods "detector-r1-predictor-6f-x" is forbidden: exceeded quota: gpus, requested: '
    "requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4"
)


def requested(world: World) -> Deployment:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    world.approved(change)
    return deployment_of(change)


def put_kserves_deployment(world: World) -> None:
    """As KServe makes it: with the labels of the InferenceService, and owned by it."""
    service = world.cluster.objects["InferenceService", "vision", "detector-r1"]
    failure = {"type": "ReplicaFailure", "status": "True", "message": QUOTA}
    world.cluster.objects["Deployment", "vision", "detector-r1-predictor"] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "detector-r1-predictor",
            "namespace": "vision",
            "labels": dict(service["metadata"]["labels"]),
            "ownerReferences": [{"kind": "InferenceService", "name": "detector-r1"}],
        },
        "status": {"conditions": [failure]},
    }


def test_a_quota_denial_of_kserves_deployment_is_the_reason_of_the_deployment(
    world: World,
) -> None:
    deployment = requested(world)
    put_kserves_deployment(world)

    world.reconcile_now(deployment)

    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.DEGRADED
    assert "quota is used up" in deployment.state_reason
    assert QUOTA[:60] in deployment.state_reason
