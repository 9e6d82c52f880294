"""What the portal reads of a cluster: nodes, what it can do, and what happened while it was away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from deployments.manifests.domain import http_route
from deployments.manifests.domain.metadata import ManifestContext
from deployments.spec.domain.serving_spec import TRITON
from fleet.clusters.services import capabilities
from fleet.kube.domain.resource_types import HTTP_ROUTE
from fleet.kube.services import clients, objects
from fleet.models import Node
from fleet.observation.services import sweep
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import ready_node
from tests.contract import account
from tests.contract.conftest import served

_MANY = 10
_LABELS = {"app.kubernetes.io/managed-by": "slipway", "contract/listed": "yes"}


def _service(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
        "spec": {"ports": [{"port": 80}]},
    }


@pytest.fixture
def node(somebody: Kubectl, namespace: str) -> Iterator[str]:
    with ready_node(somebody, namespace) as name:
        yield name


def test_a_node_becomes_a_row_and_its_gpus_an_offer(cluster_id: int, node: str) -> None:
    sweep.observe(cluster_id=cluster_id)

    row = Node.objects.get(cluster_id=cluster_id, name=node)
    assert (row.instance_type, row.allocatable["nvidia.com/gpu"]) == ("g5.xlarge", "4")
    assert row.is_ready
    probed = capabilities.probe(cluster_id=cluster_id)
    assert ("nvidia.com/gpu", 1, 4) in {
        (offer.resource, offer.nodes, offer.units) for offer in probed.gpu_offers or ()
    }


def test_a_node_that_is_gone_ends_with_the_next_listing(
    cluster_id: int, somebody: Kubectl, namespace: str
) -> None:
    with ready_node(somebody, namespace) as name:
        sweep.observe(cluster_id=cluster_id)
    sweep.observe(cluster_id=cluster_id)

    assert Node.objects.get(cluster_id=cluster_id, name=name).gone_at is not None


def test_a_watch_that_broke_off_continues_where_it_ended(
    cluster_id: int, context: ManifestContext
) -> None:
    client = clients.client_for(cluster_id)
    version = client.list_all(HTTP_ROUTE).resource_version
    backend = http_route.backend_for(1, served(TRITON).spec, 100, model="m")
    for name in ("first", "second"):
        client.apply(http_route.http_route(replace(context, deployment=name), [backend]))

    def added(since: str) -> list[tuple[str, str]]:
        return [
            (event.object["metadata"]["name"], event.resource_version)
            for event in client.watch(HTTP_ROUTE, resource_version=since, seconds=1)
            if event.type == "ADDED" and event.object["metadata"]["namespace"] == context.namespace
        ]

    everything = added(version)
    assert [name for name, _ in everything] == ["first", "second"]
    assert [name for name, _ in added(everything[0][1])] == ["second"]


def test_objects_of_more_than_eight_namespaces_are_listed(
    cluster_id: int, namespace: str, somebody: Kubectl
) -> None:
    names = [f"{namespace}-{number}" for number in range(_MANY)]
    if account.administrator() is not None:
        account.make_namespaces(somebody, cluster_id, names)
    else:
        somebody.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names
        )
    objects.apply(cluster_id=cluster_id, manifests=[_service(name, "listed") for name in names])

    services, budgets = objects.list_several(
        cluster_id=cluster_id,
        kinds=[("v1", "Service"), ("policy/v1", "PodDisruptionBudget")],
        namespaces=names,
        labels={"contract/listed": "yes"},
    )

    assert sorted(item["metadata"]["namespace"] for item in services) == names
    assert budgets == []
    somebody.run("delete", "namespace", *names, "--wait=false")
