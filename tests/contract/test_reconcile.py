"""A deployment is kept as approved: reverted, pruned, scaled, stopped and started on an API server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.lifecycle.services import stop
from deployments.models import Deployment
from deployments.spec.domain.serving_spec import Scaling
from deployments.states import Environment
from fleet.kube.gateways.client import HttpKubeClient
from fleet.kube.services import clients, objects
from fleet.models import Cluster
from portal.accounts.models import Team
from tests.cluster.kubectl import Kubectl
from tests.contract.conftest import new_namespace
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "world"]
_APPS, _SCALING = "apps/v1", "autoscaling/v2"


@dataclass
class Delivered:
    world: World
    namespace: str

    def deployed(self, name: str, **changed: Any) -> Deployment:
        draft = self.world.draft(name, Environment.STAGING, engine="triton", **changed)
        change = requests.request_deploy(actor=self.world.member, draft=draft)
        self.world.approved(change)
        return self.reconcile_now(deployment_of(change))

    def reconcile_now(self, deployment: Deployment) -> Deployment:
        """Some minutes later, so that everything is compared again."""
        self.world.clock.move(300)
        return self.world.reconcile_now(deployment)

    def get(self, api_version: str, kind: str, name: str) -> Any:
        return objects.get(
            cluster_id=self.world.cluster_id,
            api_version=api_version,
            kind=kind,
            namespace=self.namespace,
            name=name,
        )


@pytest.fixture
def delivered(
    world: World, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Delivered]:
    """The team's namespace is one of the cluster under contract."""
    monkeypatch.setattr(clients, "factory", HttpKubeClient)
    clients.forget()
    Cluster.objects.filter(pk=world.cluster_id).update(
        kind="kubeconfig", kubeconfig_path=str(kubeconfig)
    )
    with new_namespace(world.cluster_id) as namespace:
        Team.objects.filter(pk=world.team.pk).update(slug=namespace)
        world.version1.model.team.refresh_from_db()
        yield Delivered(world, namespace)
    clients.forget()


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
