"""Whether pipelines may call deployments that need a key: KServe's settings, and what the Gateway can add."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.clusters.domain.capabilities import Feature
from fleet.models import Cluster
from tests.fleet.clusters.test_capabilities import controller, probed
from tests.fleet.clusters.test_key_check import serve
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db
_ENVOY_GATEWAY = "gateway.envoyproxy.io/gatewayclass-controller"
_ISTIO = "istio.io/gateway-controller"
_SET = "under router in ConfigMap inferenceservice-config of kserve"


@pytest.mark.parametrize(
    ("router", "is_there", "why"),
    [
        ({"headers": {"propagate": ["X-Api-Key"]}}, True, ""),
        ({"headers": {"propagate": ["X-Other", "X-Api-.*"]}}, True, ""),
        ({"headers": {"propagate": ["X-Other,X-Api-Key"]}}, True, ""),
        ({"headers": {"propagate": ["(?i)x-api-key"]}}, True, ""),
        ({"headers": {"propagate": ["(", "Api"]}}, True, ""),
        ({"headers": {"propagate": ["x-api-key"]}}, False, "in just this spelling"),
        ({"headers": {"propagate": ["^X-Api$"]}}, False, "do not pass on X-Api-Key"),
        ({"headers": {"propagate": []}}, False, "do not pass on X-Api-Key"),
        ({"headers": {"propagate": [""]}}, False, "do not pass on X-Api-Key"),
        ({"headers": {"propagate": "X-Api-Key"}}, False, "do not pass on X-Api-Key"),
        ({"headers": None}, False, "do not pass on X-Api-Key"),
        ({"image": "kserve/router:v0.20.0"}, False, "do not pass on X-Api-Key"),
        ([], False, "do not pass on X-Api-Key"),
    ],
)
def test_the_router_passes_on_what_a_pattern_finds_in_gos_spelling(
    kube: FakeKube, cluster: Cluster, router: Any, is_there: bool, why: str
) -> None:
    kube.put(
        controller("kserve", "kserve-controller-manager", "kserve/controller:v0.20.0"),
        {
            "kind": "ConfigMap",
            "metadata": {"namespace": "kserve", "name": "inferenceservice-config"},
            "data": {"router": json.dumps(router)},
        },
    )

    found = probed(cluster).feature("header-propagation")

    assert found.is_there is is_there
    assert why in found.why
    assert is_there or _SET in found.why


def test_without_kserves_settings_it_is_not_known(kube: FakeKube, cluster: Cluster) -> None:
    assert probed(cluster).feature("header-propagation") == Feature(
        None, why="The portal cannot read ConfigMap inferenceservice-config of kserve."
    )


@pytest.mark.parametrize(
    ("version", "kinds", "is_there", "why"),
    [
        ("v1.4.0", ["httproutefilters"], True, ""),
        ("v1.10.2", ["httproutefilters"], True, ""),
        ("v2.0.0", ["httproutefilters"], True, ""),
        ("v1.3.3", ["httproutefilters"], False, "Envoy Gateway v1.3.3 is older than 1.4"),
        ("latest", ["httproutefilters"], None, "The version of Envoy Gateway cannot be read."),
        ("v1.9.0", [], False, "The cluster serves no HTTPRouteFilter"),
    ],
)
def test_envoy_gateway_adds_credentials_since_1_4(
    kube: FakeKube,
    cluster: Cluster,
    version: str,
    kinds: list[str],
    is_there: bool | None,
    why: str,
) -> None:
    serve(kube, _ENVOY_GATEWAY, envoy=["v1alpha1"])
    kube.served["gateway.envoyproxy.io/v1alpha1"] = ["securitypolicies", *kinds]
    kube.put(controller("envoy-gateway-system", "envoy-gateway", f"envoyproxy/gateway:{version}"))

    found = probed(cluster).feature("credential-injection")

    assert (found.is_there, found.why) == (is_there, why)


def test_istio_adds_none(kube: FakeKube, cluster: Cluster) -> None:
    serve(kube, _ISTIO, istio=["v1"])

    assert probed(cluster).feature("credential-injection") == Feature(
        is_there=False, why="The Gateway is Istio's, whose routes add no Secret"
    )
