"""A deployment is kept as approved: reverted, pruned, scaled, stopped and started on an API server."""

from __future__ import annotations

from typing import Any

from deployments.changes.services import requests
from deployments.lifecycle.services import stop
from deployments.spec.domain.serving_spec import Scaling
from fleet.kube.services import objects
from tests.cluster.kubectl import Kubectl
from tests.contract.delivered import Delivered, cluster_calls, delivered, moving_clock, world
from tests.contract.reported import make_ready, needs_administrator, node

__all__ = ["cluster_calls", "delivered", "moving_clock", "node", "world"]
_APPS, _SCALING = "apps/v1", "autoscaling/v2"


def test_an_edit_of_the_workload_is_reverted_and_its_author_recorded(
    delivered: Delivered, somebody: Kubectl
) -> None:
    deployment = delivered.deployed("edited")
    where = f"--namespace={delivered.namespace}"
    somebody.patch("deployment", "edited-r1", where, patch={"spec": {"replicas": 3}})

    delivered.reconcile_now(deployment)

    assert delivered.get(_APPS, "Deployment", "edited-r1")["spec"]["replicas"] == 1
    assert list(deployment.events.filter(kind="drift").values_list("message", flat=True)) == [
        "kubectl-patch changed spec.replicas of Deployment edited-r1 from 1 to 3; "
        "reverted to the approved manifests"
    ]


def test_a_deleted_object_beside_the_workload_is_back(
    delivered: Delivered, somebody: Kubectl
) -> None:
    deployment = delivered.deployed("beside")
    before = delivered.get("v1", "Service", "beside-r1")
    somebody.run("delete", "service", "beside-r1", f"--namespace={delivered.namespace}")
    assert delivered.get("v1", "Service", "beside-r1") is None

    delivered.reconcile_now(deployment)

    after = delivered.get("v1", "Service", "beside-r1")
    assert after["spec"]["selector"] == before["spec"]["selector"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


def test_what_is_not_rendered_any_more_is_pruned(delivered: Delivered) -> None:
    deployment = delivered.deployed("fixed")
    labels = delivered.get("v1", "Service", "fixed-r1")["metadata"]["labels"]
    earlier = _autoscaler(delivered.namespace, "fixed-r1", labels)
    objects.apply(cluster_id=delivered.world.cluster_id, manifests=[earlier])

    delivered.reconcile_now(deployment)

    assert delivered.get(_SCALING, "HorizontalPodAutoscaler", "fixed-r1") is None
    assert delivered.get(_APPS, "Deployment", "fixed-r1") is not None


def _autoscaler(namespace: str, name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": _SCALING,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "scaleTargetRef": {"apiVersion": _APPS, "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": 3,
        },
    }


@needs_administrator
def test_a_change_of_replicas_reaches_the_workload_in_place(
    delivered: Delivered, somebody: Kubectl, node: str
) -> None:
    deployment = delivered.deployed("sized")
    make_ready(delivered, somebody, node, deployment)
    before = delivered.get(_APPS, "Deployment", "sized-r1")

    delivered.scale(deployment, 3, 3)

    after = delivered.get(_APPS, "Deployment", "sized-r1")
    assert (before["spec"]["replicas"], after["spec"]["replicas"]) == (1, 3)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["template"] == before["spec"]["template"]


@needs_administrator
def test_the_replicas_of_an_autoscaler_are_not_drift(
    delivered: Delivered, somebody: Kubectl, node: str
) -> None:
    """Through the scale subresource, as the HPA controller writes them."""
    scaling = Scaling(kind="hpa")
    deployment = delivered.deployed("scaled", min_replicas=1, max_replicas=3, scaling=scaling)
    make_ready(delivered, somebody, node, deployment)
    where = f"--namespace={delivered.namespace}"
    somebody.run("scale", "deployment", "scaled-r1", where, "--replicas=2")

    delivered.reconcile_now(deployment)

    assert delivered.get(_APPS, "Deployment", "scaled-r1")["spec"]["replicas"] == 2
    assert not deployment.events.filter(kind="drift").exists()
    delivered.scale(deployment, 2, 5)
    scaler = delivered.get(_SCALING, "HorizontalPodAutoscaler", "scaled-r1")
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (2, 5)
    assert delivered.get(_APPS, "Deployment", "scaled-r1")["spec"]["replicas"] == 2


def test_a_stopped_deployment_leaves_nothing_that_runs_and_starts_again(
    delivered: Delivered,
) -> None:
    scaling = Scaling(kind="hpa")
    deployment = delivered.deployed("paused", min_replicas=2, max_replicas=3, scaling=scaling)
    scaler = delivered.get(_SCALING, "HorizontalPodAutoscaler", "paused-r1")
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (2, 3)

    stop.stop(actor=delivered.world.member, deployment_id=deployment.pk)
    delivered.reconcile_now(deployment)
    delivered.reconcile_now(deployment)

    assert delivered.get(_APPS, "Deployment", "paused-r1") is None
    assert delivered.get(_SCALING, "HorizontalPodAutoscaler", "paused-r1") is None
    start = requests.request_start(actor=delivered.world.member, deployment_id=deployment.pk)
    delivered.world.approved(start)
    delivered.reconcile_now(deployment)
    assert delivered.get(_APPS, "Deployment", "paused-r1") is not None
    assert delivered.get(_SCALING, "HorizontalPodAutoscaler", "paused-r1") is not None
