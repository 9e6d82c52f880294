"""Whether a Gateway chooses a deployment by the model of a body: read from its controller, version and settings."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.clusters.domain import envoy_gateway
from fleet.clusters.domain.capabilities import Feature
from fleet.models import Cluster
from tests.fleet.clusters.test_capabilities import probed
from tests.fleet.clusters.test_key_check import serve
from tests.fleet.fakes import FakeKube

_ENVOY_GATEWAY = "gateway.envoyproxy.io/gatewayclass-controller"
_ISTIO = "istio.io/gateway-controller"
_OFF = "Envoy Gateway runs no scripts: extensionApis.enableLua is not set"


@pytest.mark.parametrize(
    ("version", "settings", "is_there"),
    [
        ("v1.8.2", {}, True),
        ("v1.5.0", {}, True),
        ("v1.8.2", {"disableLua": True}, False),
        ("v1.8.2", {"disableLua": False}, True),
        ("v1.9.0", {}, False),
        ("v1.9.0", {"enableLua": True}, True),
        ("v1.9.0", {"enableLua": False}, False),
        ("v1.9.0", {"disableLua": False}, True),
        ("v1.10.1", {}, False),
        ("v1.4.6", {"enableLua": True}, False),
        ("v2.0.0", {}, False),
        ("", {"enableLua": True}, True),
        ("", {"disableLua": True}, False),
        ("", {}, None),
        ("latest", {}, None),
        ("v1.8.2", None, None),
        ("v1.4.6", None, False),
    ],
)
def test_scripts_run_by_version_and_settings(
    version: str, settings: dict[str, Any] | None, is_there: bool | None
) -> None:
    answer, why = envoy_gateway.runs_scripts(version, settings)

    assert answer is is_there
    assert bool(why) is (is_there is not True)


def install(kube: FakeKube, *, version: str, config: str | None) -> None:
    serve(kube, _ENVOY_GATEWAY, envoy=["v1alpha1"])
    kube.served["gateway.envoyproxy.io/v1alpha1"] = ["securitypolicies", "envoyextensionpolicies"]
    container = {"image": f"docker.io/envoyproxy/gateway:{version}"}
    namespace, name = envoy_gateway.CONFIG_MAP
    kube.put(
        {
            "kind": "Deployment",
            "metadata": {"namespace": namespace, "name": "envoy-gateway"},
            "spec": {"template": {"spec": {"containers": [container]}}},
        }
    )
    if config is not None:
        metadata = {"namespace": namespace, "name": name}
        data = {envoy_gateway.CONFIG_KEY: config}
        kube.put({"kind": "ConfigMap", "metadata": metadata, "data": data})


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("version", "config", "expected"),
    [
        ("v1.8.2", "kind: EnvoyGateway\n", Feature(True, "v1.8.2")),
        ("v1.9.0", "extensionApis: {enableBackend: true}\n", Feature(False, "v1.9.0", _OFF)),
        ("v1.9.0", "extensionApis: {enableLua: true}\n", Feature(True, "v1.9.0")),
        ("v1.9.0", "extensionApis:\n", Feature(False, "v1.9.0", _OFF)),
    ],
)
def test_envoy_gateway_is_probed(
    kube: FakeKube, cluster: Cluster, version: str, config: str, expected: Feature
) -> None:
    install(kube, version=version, config=config)

    assert probed(cluster).feature("model-routing") == expected


@pytest.mark.django_db
@pytest.mark.parametrize("config", [None, "{", "- a list", "extensionApis: text"])
def test_settings_that_cannot_be_read_are_not_known(
    kube: FakeKube, cluster: Cluster, config: str | None
) -> None:
    install(kube, version="v1.9.0", config=config)

    feature = probed(cluster).feature("model-routing")

    assert feature.is_there is None
    assert "envoy-gateway-system/envoy-gateway-config cannot be read" in feature.why


@pytest.mark.django_db
def test_a_role_that_may_not_read_the_settings_knows_nothing(
    kube: FakeKube, cluster: Cluster
) -> None:
    install(kube, version="v1.8.2", config="kind: EnvoyGateway\n")
    kube.forbidden = {"configmaps"}

    assert probed(cluster).feature("model-routing").is_there is None


@pytest.mark.django_db
def test_what_stands_in_the_way_of_other_gateways_is_said(kube: FakeKube, cluster: Cluster) -> None:
    serve(kube, _ISTIO, istio=["v1"])
    of_istio = probed(cluster).feature("model-routing")
    serve(kube, "example.com/other", envoy=["v1alpha1"])
    of_other = probed(cluster).feature("model-routing")
    serve(kube, _ENVOY_GATEWAY, envoy=["v1alpha1"])
    old = probed(cluster).feature("model-routing")

    assert of_istio.is_there is False
    assert "only an EnvoyFilter could read the model of a body" in of_istio.why
    assert of_other.why == (
        "GatewayClass istio is controlled by example.com/other, not by Envoy Gateway or Istio"
    )
    assert old == Feature(False, why="The cluster serves no EnvoyExtensionPolicy")
