"""Requests of a language model by prefix cache: KServe's InferencePool and picker, the portal's route."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deployments.manifests.domain import http_route, revision, route_paths
from deployments.manifests.domain.metadata import ServedRevision
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.manifest_strategies import CONTEXT


def _routed_by_prefix() -> ServingSpec:
    llm = {"hugging_face_id": "org/model", "prefix_routing": True}
    data = {"engine": "llm-inference-service", "instance_type": "g5.xlarge", "llm": llm}
    return ServingSpec.from_json(data)


def test_prompts_of_a_single_revision_go_through_its_endpoint_picker() -> None:
    backends = [http_route.backend_for(1, _routed_by_prefix(), 100, model="detector")]
    route = http_route.http_route(CONTEXT, backends)
    by_path = {
        rule["matches"][0]["path"]["value"].removeprefix("/vision/detector"): rule["backendRefs"]
        for rule in route["spec"]["rules"]
    }
    pool = {
        "group": "inference.networking.k8s.io",
        "kind": "InferencePool",
        "name": "detector-r1-inference-pool",
        "weight": 100,
    }
    service = {"name": "detector-r1-kserve-workload-svc", "port": 8000, "weight": 100}

    assert {path for path, references in by_path.items() if references == [pool]} == {
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
    }
    assert by_path["/v1/models"] == by_path["/v1/embeddings"] == [service]
    assert http_route.weights_in(route) == {"detector-r1-kserve-workload-svc": 100}
    assert http_route.weights_in(route) == http_route.weights_of(CONTEXT, backends)


def test_a_canary_splits_between_services_and_the_pool_returns_with_its_end() -> None:
    spec = _routed_by_prefix()

    def route(*weights: int) -> dict[str, Any]:
        backends = [
            http_route.backend_for(number, spec, weight, model="detector")
            for number, weight in enumerate(weights, start=1)
        ]
        return http_route.http_route(CONTEXT, backends)

    split, after = route(90, 10), route(0, 100)

    for rule in split["spec"]["rules"]:
        assert [(ref["name"], ref["port"], ref["weight"]) for ref in rule["backendRefs"]] == [
            ("detector-r1-kserve-workload-svc", 8000, 90),
            ("detector-r2-kserve-workload-svc", 8000, 10),
        ]
    assert http_route.weights_in(after) == {"detector-r2-kserve-workload-svc": 100}
    assert route_paths.paths_in(split) != route_paths.paths_in(after), (
        "so the route is written again"
    )
    assert (
        "Exact /vision/detector/v1/chat/completions -> /v1/chat/completions by endpoint picker"
        in route_paths.paths_in(after)
    )


def test_requests_are_mirrored_to_the_service_past_the_endpoint_picker() -> None:
    spec = _routed_by_prefix()
    route = http_route.http_route(
        CONTEXT,
        [
            http_route.backend_for(1, spec, 100, model="detector"),
            http_route.backend_for(2, spec, 0, model="detector", mirror=20),
        ],
    )

    (mirror,) = route["spec"]["rules"][0]["filters"][1:]
    assert mirror["requestMirror"] == {
        "backendRef": {"name": "detector-r2-kserve-workload-svc", "port": 8000},
        "percent": 20,
    }
    assert http_route.mirrors_in(route) == {"detector-r2-kserve-workload-svc": 20}


def test_the_endpoint_picker_reaches_the_pods_of_its_revision_and_the_api_server_only() -> None:
    context = replace(CONTEXT, control_plane_cidrs=("10.9.0.0/24",), egress_cidrs=())
    served = ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/p/", _routed_by_prefix())
    manifests = {one["metadata"]["name"]: one for one in revision.build_own(context, served)}
    policy = manifests["detector-r1-picker"]["spec"]

    assert policy["podSelector"]["matchLabels"] == {
        "app.kubernetes.io/name": "detector-r1",
        "app.kubernetes.io/component": "llminferenceservice-router-scheduler",
    }
    (sources,) = policy["ingress"]
    assert list(sources) == ["from"]
    _, models, api_server = policy["egress"]
    assert models == {
        "to": [{"podSelector": {"matchLabels": {"slipway.dev/workload": "detector-r1"}}}]
    }
    assert api_server == {
        "to": [{"ipBlock": {"cidr": "10.9.0.0/24"}}],
        "ports": [{"port": 443, "protocol": "TCP"}, {"port": 6443, "protocol": "TCP"}],
    }
