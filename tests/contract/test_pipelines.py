"""Pipelines against a real API server: objects are accepted, listed, and stay as desired."""

from __future__ import annotations

import pytest

from deployments.manifests.domain import http_route, metadata
from deployments.manifests.domain.access import caller_keys
from deployments.manifests.domain.metadata import ManifestContext
from deployments.pipelines.domain import manifests, pipeline_spec, reconcile
from deployments.pipelines.domain.manifests import GraphContext
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.domain.reconcile import Act, Live
from fleet.kube.domain.errors import ObjectNotFound
from fleet.kube.services import clients, objects

STEPS = [
    {"deployment": "first", "condition": 'inputs.#(name=="x")', "is_required": True},
    {"deployment": "second"},
]
FILTER = (caller_keys.API_VERSION, manifests.FILTER_KIND)
KINDS = [(manifests.API_VERSION, manifests.KIND), (http_route.API_VERSION, http_route.KIND)]


def test_written_objects_are_accepted_listed_and_not_written_again(
    cluster_id: int, context: ManifestContext
) -> None:
    _require_graphs(cluster_id)
    where, spec = _where(context, "both", 4712), _spec()
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


def _spec() -> PipelineSpec:
    return pipeline_spec.from_json({"nodes": [{"name": "root", "kind": "switch", "steps": STEPS}]})


def _where(context: ManifestContext, name: str, pipeline_id: int) -> GraphContext:
    return GraphContext(
        team=context.team,
        namespace=context.namespace,
        name=name,
        pipeline_id=pipeline_id,
        gateway_url="http://gateway.example",
        gateway_namespace=context.gateway_namespace,
        gateway_name=context.gateway_name,
    )


def test_one_with_a_key_is_accepted_and_not_written_again(
    cluster_id: int, context: ManifestContext
) -> None:
    _require_graphs(cluster_id)
    _require_filters(cluster_id)
    where = _where(context, "keyed", 4713)
    graph = manifests.inference_graph(where, _spec(), {"first": "v2/a", "second": "v2/b"})
    made = [graph, manifests.key_filter(where), manifests.http_route(where, has_key=True)]
    objects.dry_run(cluster_id=cluster_id, manifests=made)

    secret = manifests.secret(where, "slc_a")
    objects.apply(cluster_id=cluster_id, manifests=[secret, *made], force=True)

    listed = objects.list_several(
        cluster_id=cluster_id,
        kinds=[*KINDS, FILTER],
        namespaces=[context.namespace],
        labels={metadata.PIPELINE_ID_LABEL: "4713"},
    )
    live_graph, live_route, live_filter = (rows[0] for rows in listed)
    live = Live(graph=live_graph, route=live_route, key_filter=live_filter, router={"metadata": {}})
    assert reconcile.decide(made[0], made[2], live, key_filter=made[1]) == Act.NONE
    live_filter["spec"]["credentialInjection"]["overwrite"] = False
    assert reconcile.decide(made[0], made[2], live, key_filter=made[1]) == Act.PUSH_ROUTE
    assert reconcile.decide(made[0], manifests.http_route(where), live) == Act.PUSH_ROUTE


def _require_filters(cluster_id: int) -> None:
    try:
        served = clients.client_for(cluster_id).resources(FILTER[0])
    except ObjectNotFound:
        served = frozenset()
    if "httproutefilters" not in served:
        pytest.skip("the cluster serves no HTTPRouteFilter")


def _require_graphs(cluster_id: int) -> None:
    client = clients.client_for(cluster_id)
    try:
        served = client.resources(manifests.API_VERSION)
    except ObjectNotFound:
        served = frozenset()
    if "inferencegraphs" not in served:
        pytest.skip("the cluster serves no InferenceGraph")
