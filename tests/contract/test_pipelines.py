"""Pipelines against a real API server: objects are accepted, listed, and stay as desired."""

from __future__ import annotations

import pytest

from deployments.manifests.domain import http_route, metadata
from deployments.manifests.domain.metadata import ManifestContext
from deployments.pipelines.domain import manifests, pipeline_spec, reconcile
from deployments.pipelines.domain.manifests import GraphContext
from deployments.pipelines.domain.reconcile import Act, Live
from fleet.kube.domain.errors import ObjectNotFound
from fleet.kube.services import clients, objects

STEPS = [
    {"deployment": "first", "condition": 'inputs.#(name=="x")', "is_required": True},
    {"deployment": "second"},
]
KINDS = [(manifests.API_VERSION, manifests.KIND), (http_route.API_VERSION, http_route.KIND)]


def test_written_objects_are_accepted_listed_and_not_written_again(
    cluster_id: int, context: ManifestContext
) -> None:
    _require_graphs(cluster_id)
    spec = pipeline_spec.from_json({"nodes": [{"name": "root", "kind": "switch", "steps": STEPS}]})
    where = GraphContext(
        team=context.team,
        namespace=context.namespace,
        name="both",
        pipeline_id=4712,
        gateway_url="http://gateway.example",
        gateway_namespace=context.gateway_namespace,
        gateway_name=context.gateway_name,
    )
    made = manifests.manifests(where, spec, {"first": "v2/a", "second": "v2/b"})
    objects.dry_run(cluster_id=cluster_id, manifests=made)

    objects.apply(cluster_id=cluster_id, manifests=made, force=True)

    (graph,), (route,) = objects.list_several(
        cluster_id=cluster_id,
        kinds=KINDS,
        namespaces=[context.namespace],
        labels={metadata.PIPELINE_ID_LABEL: "4712"},
    )
    live = Live(graph=graph, route=route, router={"metadata": {}})
    assert reconcile.decide(*made, live) == Act.NONE
    graph["spec"]["nodes"]["root"]["steps"].reverse()
    assert reconcile.decide(*made, live) == Act.PUSH_GRAPH


def _require_graphs(cluster_id: int) -> None:
    client = clients.client_for(cluster_id)
    try:
        served = client.resources(manifests.API_VERSION)
    except ObjectNotFound:
        served = frozenset()
    if "inferencegraphs" not in served:
        pytest.skip("the cluster serves no InferenceGraph")
