"""How the Gateway checks keys of callers: read from its controller, and kept while it cannot be read."""

from __future__ import annotations

import pytest

from fleet.clusters.domain.capabilities import API_KEYS, ISTIO_TOKENS, Feature
from fleet.models import Cluster
from tests.fleet.clusters.test_capabilities import gateway, gateway_class, probed
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db
_ENVOY_GATEWAY = "gateway.envoyproxy.io/gatewayclass-controller"
_ISTIO = "istio.io/gateway-controller"
_VERIFIES = "Istio verifies keys that the portal signs. It enforces no limits of keys."


def serve(kube: FakeKube, controller: str, **groups: list[str]) -> None:
    named = {"envoy": "gateway.envoyproxy.io", "istio": "security.istio.io"}
    kube.api_groups |= {"gateway.networking.k8s.io": ["v1"]}
    kube.api_groups |= {named[name]: versions for name, versions in groups.items()}
    kube.put(gateway(), {**gateway_class(), "spec": {"controllerName": controller}})


@pytest.mark.parametrize(
    ("controller", "groups", "kind", "expected"),
    [
        (_ENVOY_GATEWAY, {"envoy": ["v1alpha1"]}, API_KEYS, Feature(True, "v1alpha1")),
        (
            _ISTIO,
            {"istio": ["v1", "v1beta1"]},
            ISTIO_TOKENS,
            Feature(True, "v1", why=_VERIFIES),
        ),
        # Both are installed: the controller of the Gateway decides.
        (
            _ISTIO,
            {"istio": ["v1"], "envoy": ["v1alpha1"]},
            ISTIO_TOKENS,
            Feature(True, "v1", why=_VERIFIES),
        ),
        (
            _ISTIO,
            {"istio": ["v1beta1"]},
            "",
            Feature(
                False, why="The cluster serves no security.istio.io/v1: Istio is older than 1.22"
            ),
        ),
        (
            "example.com/other",
            {"istio": ["v1"]},
            "",
            Feature(
                False,
                why="GatewayClass istio is controlled by example.com/other, not by Envoy Gateway or Istio",
            ),
        ),
        (
            _ENVOY_GATEWAY,
            {},
            "",
            Feature(False, why="Neither Envoy Gateway nor Istio is installed"),
        ),
    ],
)
def test_the_controller_of_the_gateway_says_how_keys_are_checked(
    kube: FakeKube,
    cluster: Cluster,
    controller: str,
    groups: dict[str, list[str]],
    kind: str,
    expected: Feature,
) -> None:
    serve(kube, controller, **groups)

    result = probed(cluster)

    assert result.feature("caller-keys") == expected
    assert result.key_check == kind
    # Istio's policies of the portal know its own keys only.
    is_open = kind != ISTIO_TOKENS and expected.is_there
    assert result.feature("caller-jwt").is_there is is_open


def test_what_is_known_of_the_check_is_kept_where_a_probe_cannot_tell(
    kube: FakeKube, cluster: Cluster
) -> None:
    serve(kube, _ISTIO, istio=["v1"])
    assert probed(cluster).verifies_tokens

    kube.forbidden = {"gatewayclasses"}
    unknown = probed(cluster)
    kube.forbidden = set()
    serve(kube, _ENVOY_GATEWAY, envoy=["v1alpha1"])
    moved = probed(cluster)

    assert unknown.feature("caller-keys").is_there is None
    assert unknown.verifies_tokens
    assert moved.key_check == API_KEYS


def test_policies_of_gateways_alone_are_no_mtls_between_pods(
    kube: FakeKube, cluster: Cluster
) -> None:
    serve(kube, _ISTIO, istio=["v1"])

    assert probed(cluster).feature("istio") == Feature(
        False, why="The cluster serves no PeerAuthentication"
    )


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ([{"name": "slipway.dev/TokenCounts"}], True),
        ([{"name": "HTTPRoute"}], False),
    ],
)
def test_tokens_are_counted_where_the_gateway_or_prometheus_has_them(
    kube: FakeKube, cluster: Cluster, listed: list[dict[str, str]], expected: bool
) -> None:
    kube.api_groups |= {"gateway.networking.k8s.io": ["v1"]}
    kube.put(gateway(), {**gateway_class(), "status": {"supportedFeatures": listed}})

    assert probed(cluster).feature("token-counts").is_there is expected
