"""Policies of a team's namespace: no traffic to or from its pods, except …"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployments.manifests.domain import network, resource_limits, revision
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.definitions import Rejected

_CONTEXT = ManifestContext(
    "vision", "vision", "detector", 1, False, "gw", "gw", "i", "s", vllm_image="v"
)
_LINK_LOCAL = ["169.254.0.0/16"]
_ANYWHERE = [
    {"ipBlock": {"cidr": "0.0.0.0/0", "except": _LINK_LOCAL}},
    {"ipBlock": {"cidr": "::/0", "except": ["fe80::/10", "fd00:ec2::/32"]}},
]
_DNS = {
    "to": [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}},
        {"ipBlock": {"cidr": "169.254.20.10/32"}},
    ],
    "ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
}


def _served(engine: str, **data: Any) -> ServedRevision:
    spec = ServingSpec.from_json({"engine": engine, "instance_type": "g5.xlarge", **data})
    return ServedRevision(1, "m", "m:1", "ab" * 32, "s3://b/p/", spec)


def _egress(context: ManifestContext, served: ServedRevision) -> list[dict[str, Any]]:
    (policy,) = [
        manifest
        for manifest in revision.build_own(context, served)
        if manifest["kind"] == "NetworkPolicy"
    ]
    assert policy["spec"]["policyTypes"] == ["Egress", "Ingress"]
    rules: list[dict[str, Any]] = policy["spec"]["egress"]
    return rules


def _case(engine: str) -> ServedRevision:
    llm = {"hugging_face_id": "a/b"} if engine in serving_spec.LLM_ENGINES else None
    return _served(engine, llm=llm)


@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_pods_of_every_engine_reach_dns_their_peers_and_the_sources_of_models(engine: str) -> None:
    own = {"podSelector": {"matchLabels": {"slipway.dev/workload": "detector-r1"}}}

    assert _egress(_CONTEXT, _case(engine)) == [
        _DNS,
        {"to": [own]},
        {"to": _ANYWHERE, "ports": [{"port": 443, "protocol": "TCP"}]},
        {
            "to": [{"ipBlock": {"cidr": "169.254.170.23/32"}}],
            "ports": [{"port": 80, "protocol": "TCP"}],
        },
    ]


def test_other_pods_in_the_namespace_reach_dns_only() -> None:
    (deny,) = [
        manifest
        for manifest in revision.build_shared(_CONTEXT, _case("triton"))
        if manifest["metadata"]["name"] == "slipway-default-deny"
    ]

    assert deny["spec"] == {
        "podSelector": {},
        "policyTypes": ["Egress", "Ingress"],
        "egress": [_DNS],
    }


@pytest.mark.parametrize("field", ["network_policy", "egress"])
def test_no_setting_removes_the_policies(field: str) -> None:
    with pytest.raises(Rejected, match=f"network.{field}"):
        _served("triton", network={field: False})


def test_a_cluster_with_egress_addresses_allows_only_those() -> None:
    context = replace(_CONTEXT, egress_cidrs=("52.216.0.0/15", "169.254.0.0/16"))

    blocks = _egress(context, _case("triton"))[2]["to"]

    assert blocks == [
        {"ipBlock": {"cidr": "52.216.0.0/15"}},
        {"ipBlock": {"cidr": "169.254.0.0/16"}},
    ]
    assert len(_egress(replace(_CONTEXT, egress_cidrs=()), _case("triton"))) == 3


def test_a_store_is_reached_by_its_namespace_inside_and_its_port_outside() -> None:
    inside = replace(_CONTEXT, s3_endpoint="http://minio.storage.svc.cluster.local:9000")
    outside = replace(_CONTEXT, s3_endpoint="https://s3.example.org:8443")

    assert _egress(inside, _case("triton"))[-1] == {
        "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "storage"}}}]
    }
    ports = _egress(outside, _case("triton"))[2]["ports"]
    assert [port["port"] for port in ports] == [443, 8443]


def test_the_api_server_reaches_the_serving_port_from_the_configured_addresses() -> None:
    context = replace(_CONTEXT, control_plane_cidrs=("10.0.0.0/24",))

    closed, opened = (
        network.build_workload_policy(one, _case("triton"))["spec"]["ingress"]
        for one in (_CONTEXT, context)
    )

    api_server = {"ipBlock": {"cidr": "10.0.0.0/24"}}
    prometheus = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    }
    assert closed[1:] == [{"ports": [{"port": 8002, "protocol": "TCP"}]}]
    assert opened == [
        closed[0],
        {"from": [prometheus, api_server], "ports": [{"port": 8002, "protocol": "TCP"}]},
        {"from": [api_server], "ports": [{"port": 8080, "protocol": "TCP"}]},
    ]


def test_proxies_in_a_namespace_of_their_own_reach_pods_and_pipelines() -> None:
    context = replace(_CONTEXT, proxy_namespaces=("envoy-gateway-system", "gw"))
    names = [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
        for name in ("gw", "envoy-gateway-system")
    ]

    workload = network.build_workload_policy(context, _case("triton"))["spec"]
    pipelines = network.pipelines(context)["spec"]

    assert workload["ingress"][0]["from"] == [{"podSelector": {}}, *names]
    assert pipelines["ingress"] == [{"from": names}]
    assert {"to": names} in pipelines["egress"]


def test_routers_of_pipelines_receive_and_send_through_the_gateway() -> None:
    gateway = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gw"}}}

    spec = network.pipelines(_CONTEXT)["spec"]

    assert spec["podSelector"]["matchExpressions"] == [
        {"key": "serving.kserve.io/inferencegraph", "operator": "Exists"}
    ]
    assert spec["ingress"] == [{"from": [gateway]}]
    assert spec["egress"][:2] == [_DNS, {"to": [gateway]}]


def test_the_quota_of_the_team_limits_the_namespace() -> None:
    quota, defaults = resource_limits.limit_namespace(_CONTEXT, quota_gpus=6)

    hard = quota["spec"]["hard"]
    assert (quota["kind"], defaults["kind"]) == ("ResourceQuota", "LimitRange")
    assert {hard[name] for name in hard if "nvidia.com" in name} == {"6"}
    assert hard["requests.nvidia.com/mig-1g.5gb.me"] == hard["requests.nvidia.com/gpu"] == "6"
    assert (hard["services.loadbalancers"], hard["services.nodeports"]) == ("0", "0")
    assert defaults["spec"]["limits"][0]["default"] == {"cpu": "1", "memory": "2Gi"}
