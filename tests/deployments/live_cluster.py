"""The world of the delivery tests on a real API server, with the controllers switched off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import httpx
import pytest
from django.db import connection

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.models import Deployment
from fleet.kube.gateways.client import HttpKubeClient
from fleet.kube.services import clients
from fleet.models import Cluster
from tests.deployments.world import World
from tests.installations import use_same_installation
from tests.localcluster.conftest import LocalApi, start_api, stop_api

ISVC = "/apis/serving.kserve.io/v1beta1/namespaces/vision/inferenceservices"
PDB = "/apis/policy/v1/namespaces/vision/poddisruptionbudgets"
ROUTE = "/apis/gateway.networking.k8s.io/v1/namespaces/vision/httproutes"
# Far apart: no test makes as many deployments.
_FIRST_IDS: Final = count(start=1000, step=1000)


@pytest.fixture(scope="module")
def module_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalApi]:
    process, api = start_api(tmp_path_factory.mktemp("delivery-cluster"))
    yield api
    stop_api(process)


@dataclass
class Live:
    """`http` is someone else with rights on the cluster."""

    world: World
    http: httpx.Client

    def deployed(self, name: str) -> Deployment:
        change = requests.request_deploy(actor=self.world.member, draft=self.world.draft(name))
        self.world.approved(change)
        return self.reconcile_now(deployment_of(change))

    def reconcile_now(self, deployment: Deployment) -> Deployment:
        """Some minutes later, so that everything is compared again."""
        self.world.clock.move(300)
        return self.world.reconcile_now(deployment)

    def edit(self, path: str, patch: dict[str, Any], *, manager: str = "kubectl-edit") -> None:
        done = self.http.patch(
            path,
            json=patch,
            params={"fieldManager": manager},
            headers={"Content-Type": "application/merge-patch+json"},
        )
        assert done.status_code == 200, done.text

    def remove_namespace(self, name: str) -> None:
        """As its controller does once nothing is left inside."""
        path = f"/api/v1/namespaces/{name}"
        self.http.delete(path)
        body = {"metadata": {"name": name}, "spec": {"finalizers": []}}
        assert self.http.put(f"{path}/finalize", json=body).status_code == 200

    def get(self, path: str) -> dict[str, Any] | None:
        answer = self.http.get(path)
        body: dict[str, Any] = answer.json()
        return body if answer.status_code == 200 else None


@pytest.fixture
def live(world: World, module_api: LocalApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    monkeypatch.setattr(clients, "factory", HttpKubeClient)
    clients.forget()
    use_same_installation()
    _use_new_ids()
    Cluster.objects.filter(pk=world.cluster_id).update(
        kind="kubeconfig", kubeconfig_path=str(module_api.kubeconfig)
    )
    with module_api.client() as http:
        yield Live(world, http)
    clients.forget()


def _use_new_ids() -> None:
    """The cluster keeps what earlier tests of the module made, with the ids of its deployments. SQLite gives the ids of
    a transaction that is rolled back again, PostgreSQL never does.
    """
    if connection.vendor != "sqlite":
        return
    table, first = Deployment._meta.db_table, next(_FIRST_IDS)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table])
        cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, first])
