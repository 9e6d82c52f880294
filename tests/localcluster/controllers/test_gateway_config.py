"""Envoy's configuration and route statuses, without an Envoy."""

import re
from pathlib import Path
from typing import Any

import pytest

from slipway_localcluster.controllers import envoy_bootstrap, envoy_config, free_ports, http_routes
from slipway_localcluster.controllers.envoy_config import Backend, Endpoint, Route
from slipway_localcluster.controllers.envoy_files import EnvoyFiles
from tests.localcluster.controllers import manifests


def _only_route(listed: list[Route]) -> dict:  # type: ignore[type-arg]
    hosts = envoy_config.routes(listed)["resources"][0]["virtual_hosts"]
    return dict(hosts[0]["routes"][0])


def test_a_route_becomes_weights_a_rewrite_and_a_timeout() -> None:
    route_config = _only_route(http_routes.routes_of(manifests.route({"one": 90, "two": 10})))

    assert route_config["match"] == {"path_separated_prefix": "/vision/digits"}
    assert route_config["route"]["weighted_clusters"]["clusters"] == [
        {"name": "vision_one-predictor_80", "weight": 90},
        {"name": "vision_two-predictor_80", "weight": 10},
    ]
    assert route_config["route"]["timeout"] == "60s"
    assert "5xx" not in route_config["route"]["retry_policy"]["retry_on"]


def test_a_service_port_marked_as_h2c_gets_http2() -> None:
    service = {
        "metadata": {"namespace": "vision", "name": "one-predictor"},
        "spec": {"ports": [{"port": 80, "appProtocol": "kubernetes.io/h2c"}, {"port": 8002}]},
    }
    http2 = http_routes.http2_ports([service])
    route = manifests.route({"one": 90, "two": 10})

    clusters = [item.cluster for item in http_routes.backends_of(route, http2)]

    assert clusters == ["vision_one-predictor_80_h2c", "vision_two-predictor_80"]
    assert [
        next(iter(cluster["typed_extension_protocol_options"].values()))["explicit_http_config"]
        for cluster in envoy_config.clusters(clusters, directory="/d")["resources"]
    ] == [{"http2_protocol_options": {}}, {"http_protocol_options": {}}]
    weighted = _only_route(http_routes.routes_of(route, http2))["route"]["weighted_clusters"]
    assert [item["name"] for item in weighted["clusters"]] == clusters


@pytest.mark.parametrize(
    ("prefix", "replacement", "path", "result"),
    [
        ("/a/b", "/", "/a/b/v2/models", "/v2/models"),
        ("/a/b", "/", "/a/b", "/"),
        ("/a/b", "/x", "/a/b/v2", "/x/v2"),
        ("/a.b", "/", "/a.b/v2", "/v2"),
    ],
)
def test_prefixes_are_rewritten(prefix: str, replacement: str, path: str, result: str) -> None:
    route = Route(prefix, False, (), replacement, "1s", (Backend("c", 1),))

    rewrite = _only_route([route])["route"]["regex_rewrite"]

    assert re.sub(rewrite["pattern"]["regex"], rewrite["substitution"], path) == result


def test_replace_full_path_drops_the_rest_of_the_path() -> None:
    route = manifests.route({"one": 1})
    rule = route["spec"]["rules"][0]
    rule["matches"] = [{"path": {"type": "Exact", "value": "/vision/digits/v2"}}]
    change = {"type": "ReplaceFullPath", "replaceFullPath": "/v2"}
    rule["filters"] = [{"type": "URLRewrite", "urlRewrite": {"path": change}}]

    route_config = _only_route(http_routes.routes_of(route))

    assert route_config["match"] == {"path": "/vision/digits/v2"}
    rewrite = route_config["route"]["regex_rewrite"]
    assert (
        re.sub(rewrite["pattern"]["regex"], rewrite["substitution"], "/vision/digits/v2") == "/v2"
    )


def test_a_route_without_weight_answers_500() -> None:
    route_config = _only_route(http_routes.routes_of(manifests.route({"one": 0})))

    assert route_config["direct_response"]["status"] == 500


def test_longer_prefixes_come_first() -> None:
    listed = [
        Route(path, False, (), None, "1s", (Backend("c", 1),)) for path in ("/", "/a", "/a/b")
    ]

    hosts = envoy_config.routes(listed)["resources"][0]["virtual_hosts"]

    prefixes = [next(iter(item["match"].values())) for item in hosts[0]["routes"]]
    assert prefixes == ["/a/b", "/a", "/"]


def test_unsupported_filters_are_refused_with_a_message() -> None:
    route = manifests.route({"one": 1})
    route["spec"]["rules"][0]["filters"] = [{"type": "RequestRedirect"}]

    with pytest.raises(http_routes.UnsupportedRoute, match="URLRewrite"):
        http_routes.routes_of(route)


def _mirrored(**options: Any) -> dict:  # type: ignore[type-arg]
    route = manifests.route({"one": 100})
    backend = {"name": "two-predictor", "port": 80}
    route["spec"]["rules"][0]["filters"].append(
        {"type": "RequestMirror", "requestMirror": {"backendRef": backend, **options}}
    )
    return route


def test_a_mirror_becomes_a_mirror_policy_beside_the_weights() -> None:
    route = _mirrored(percent=25)

    route_config = _only_route(http_routes.routes_of(route))["route"]

    assert route_config["weighted_clusters"]["clusters"] == [
        {"name": "vision_one-predictor_80", "weight": 100}
    ]
    fraction = {"numerator": 25, "denominator": "HUNDRED"}
    assert route_config["request_mirror_policies"] == [
        {"cluster": "vision_two-predictor_80", "runtime_fraction": {"default_value": fraction}}
    ]
    assert "regex_rewrite" in route_config
    assert [item.cluster for item in http_routes.backends_of(route)] == [
        "vision_one-predictor_80",
        "vision_two-predictor_80",
    ]


def test_a_mirror_without_percent_copies_everything_and_zero_percent_nothing() -> None:
    unlimited = _only_route(http_routes.routes_of(_mirrored()))["route"]
    nothing = _only_route(http_routes.routes_of(_mirrored(percent=0)))["route"]

    fraction = unlimited["request_mirror_policies"][0]["runtime_fraction"]
    assert fraction["default_value"]["numerator"] == 100
    assert "request_mirror_policies" not in nothing


def test_a_mirror_by_fraction_is_refused_with_a_message() -> None:
    with pytest.raises(http_routes.UnsupportedRoute, match="percent"):
        http_routes.routes_of(_mirrored(fraction={"numerator": 1}))


@pytest.mark.parametrize(("text", "seconds"), [("10s", "10s"), ("1m30s", "90s"), ("500ms", "0.5s")])
def test_gateway_api_durations_become_seconds(text: str, seconds: str) -> None:
    route = manifests.route({"one": 1})
    route["spec"]["rules"][0]["timeouts"] = {"request": text}

    assert http_routes.routes_of(route)[0].timeout == seconds


def _pod(name: str, *, is_ready: bool = True, is_deleted: bool = False) -> dict:  # type: ignore[type-arg]
    pod = manifests.pod(name)
    pod["metadata"] |= {
        "labels": {"app": "m"},
        "annotations": {"local.slipway.dev/port-8080": "4711"},
    }
    if is_deleted:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = "True" if is_ready else "False"
    pod["status"] = {"conditions": [{"type": "Ready", "status": status}]}
    return pod


def test_only_ready_pods_that_are_not_being_deleted_are_endpoints() -> None:
    service = {
        "metadata": {"name": "m", "namespace": "vision"},
        "spec": {"selector": {"app": "m"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    pods = [_pod("a"), _pod("b", is_ready=False), _pod("c", is_deleted=True)]

    assert http_routes.endpoints_of(service, 80, pods) == [Endpoint("127.0.0.1", 4711)]
    assert http_routes.endpoints_of(service, 81, pods) == []


def test_missing_services_are_named_in_the_status() -> None:
    route = manifests.route({"one": 1})
    route["metadata"]["generation"] = 3

    parents = route["spec"]["parentRefs"]
    status = http_routes.status_of(route, parents, None, ["vision/one-predictor:80"])

    resolved = status["parents"][0]["conditions"][1]
    assert (resolved["status"], resolved["reason"]) == ("False", "BackendNotFound")
    assert "vision/one-predictor:80" in resolved["message"]
    assert resolved["observedGeneration"] == 3


def test_files_are_complete_and_clusters_outlive_their_routes(tmp_path: Path) -> None:
    files = EnvoyFiles(tmp_path, 4712)
    listed = http_routes.routes_of(manifests.route({"one": 1}))

    files.update(listed, {"vision_one-predictor_80": [Endpoint("127.0.0.1", 1)]})
    files.update([], {})

    live = tmp_path / "live"
    assert "vision_one-predictor_80" in (live / "clusters" / "clusters.json").read_text()
    assert "vision_one-predictor_80" not in (live / "routes" / "routes.json").read_text()
    assert (live / "endpoints" / "vision_one-predictor_80.json").is_file()
    assert not list(tmp_path.rglob("*.partial"))
    assert (tmp_path / "bootstrap.json").is_file()


def test_the_ports_of_the_administration_differ_from_the_gateway_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_ports, "take", lambda count: [4712, 4713, 4714][:count])

    first = EnvoyFiles(tmp_path, 4712)
    moved = EnvoyFiles(tmp_path, 4713)
    again = EnvoyFiles(tmp_path, 4715)

    assert (first.admin_port, first.stats_port) == (4713, 4714)
    assert (moved.admin_port, moved.stats_port) == (4712, 4714)
    assert (again.admin_port, again.stats_port) == (4712, 4714)


def test_only_metrics_of_the_administration_are_offered_to_pods_of_the_cluster() -> None:
    started = envoy_bootstrap.bootstrap(
        directory="/d", gateway_port=80, admin_port=9901, stats_port=19001
    )

    stats = started["static_resources"]["listeners"][1]
    assert stats["address"]["socket_address"]["port_value"] == 19001
    manager = stats["filter_chains"][0]["filters"][0]["typed_config"]
    (route,) = manager["route_config"]["virtual_hosts"][0]["routes"]
    assert route["match"]["path"] == "/stats/prometheus"
    assert [header["string_match"] for header in route["match"]["headers"]] == [{"exact": "GET"}]
