"""Objects of more than eight teams, with access granted in each team's namespace only."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from deployments.manifests.domain.metadata import DEPLOYMENT_ID_LABEL, MANAGED_BY
from fleet.kube.services import objects
from tests.cluster.kubectl import Kubectl
from tests.contract import account

_COUNT = 10


@pytest.fixture
def namespaces(cluster_id: int, admin: Kubectl) -> Iterator[list[str]]:
    names = [f"slipway-many-{os.getpid()}-{number}" for number in range(_COUNT)]
    account.make_namespaces(admin, cluster_id, names)
    yield names
    admin.run("delete", "namespace", *names, "--wait=false")


def test_objects_in_many_namespaces_are_listed(cluster_id: int, namespaces: list[str]) -> None:
    labels = {**MANAGED_BY, DEPLOYMENT_ID_LABEL: "4713"}
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "listed", "namespace": name, "labels": labels},
            "spec": {"ports": [{"port": 80}]},
        }
        for name in namespaces
    ]
    objects.apply(cluster_id=cluster_id, manifests=manifests)

    services, budgets = objects.list_several(
        cluster_id=cluster_id,
        kinds=[("v1", "Service"), ("policy/v1", "PodDisruptionBudget")],
        namespaces=namespaces,
        labels={DEPLOYMENT_ID_LABEL: "4713"},
    )

    assert sorted(item["metadata"]["namespace"] for item in services) == sorted(namespaces)
    assert budgets == []
