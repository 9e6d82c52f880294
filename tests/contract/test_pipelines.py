"""Pipelines against a real API server: what is written is taken, found again, and stays as wanted."""

from __future__ import annotations

import pytest

from deployments.domain import pipeline_looks, pipelines
from deployments.domain.manifests import graph, routes
from deployments.domain.manifests.graph import GraphPlace
from deployments.domain.manifests.parts import Place
from deployments.domain.pipeline_looks import Act, Live
from fleet.domain.cluster_errors import ObjectNotFound
from fleet.services import clients, objects

STEPS = [
    {"deployment": "first", "condition": 'inputs.#(name=="x")', "is_required": True},
    {"deployment": "second"},
]
KINDS = [(graph.API_VERSION, graph.KIND), (routes.API_VERSION, routes.KIND)]


def test_what_is_written_is_taken_found_and_not_written_again(
    cluster_id: int, place: Place
) -> None:
    _require_graphs(cluster_id)
    spec = pipelines.from_json({"nodes": [{"name": "root", "kind": "switch", "steps": STEPS}]})
    where = GraphPlace(
        team=place.team,
        namespace=place.namespace,
        name="both",
        pipeline_id=4712,
        gateway_url="http://gateway.example",
        gateway_namespace=place.gateway_namespace,
        gateway_name=place.gateway_name,
    )
    made = graph.manifests(where, spec, {"first": "v2/a", "second": "v2/b"})
    objects.apply(cluster_id=cluster_id, manifests=made, dry_run=True)

    objects.apply(cluster_id=cluster_id, manifests=made, force=True)

    (found,), (route,) = objects.list_several(
        cluster_id=cluster_id,
        kinds=KINDS,
        namespace=place.namespace,
        labels={graph.PIPELINE_ID_LABEL: "4712"},
    )
    live = Live(graph=found, route=route, router={"metadata": {}})
    assert pipeline_looks.decide(*made, live) == Act.NONE
    found["spec"]["nodes"]["root"]["steps"].reverse()
    assert pipeline_looks.decide(*made, live) == Act.PUSH_GRAPH


def _require_graphs(cluster_id: int) -> None:
    client = clients.client_for(cluster_id)
    try:
        served = client.resources(graph.API_VERSION)
    except ObjectNotFound:
        served = set()
    if "inferencegraphs" not in served:
        pytest.skip("the cluster serves no InferenceGraph")
