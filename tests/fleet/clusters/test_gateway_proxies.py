"""Proxies of a Gateway that run in a namespace of their own: named before a request is lost."""

from __future__ import annotations

import pytest

from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.services import capabilities
from fleet.models import Cluster
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db
ENVOY_GATEWAY = {"gateway.envoyproxy.io/owning-gateway-name": "slipway"}
ISTIO = {"gateway.networking.k8s.io/gateway-name": "slipway"}


def put_proxy(kube: FakeKube, namespace: str, labels: dict[str, str]) -> None:
    metadata = {"namespace": namespace, "name": "proxy-1", "labels": labels}
    kube.put({"kind": "Pod", "metadata": metadata})


def probed(cluster: Cluster) -> Capabilities:
    return capabilities.probe(cluster_id=cluster.pk)


def test_proxies_in_another_namespace_are_named_and_nothing_is_offered(
    kube: FakeKube, cluster: Cluster
) -> None:
    put_proxy(kube, "envoy-gateway-system", ENVOY_GATEWAY)

    read = probed(cluster)

    assert read.feature("gateway-proxies") == Feature(
        is_there=False,
        why="The proxies of Gateway slipway-gateway/slipway run in envoy-gateway-system, which "
        "network policies do not admit",
    )
    assert read.offers_engine("triton").ok is False


def test_the_serving_policy_admits_them(kube: FakeKube, cluster: Cluster) -> None:
    put_proxy(kube, "envoy-gateway-system", ENVOY_GATEWAY)
    Cluster.objects.update(serving={"gateway_namespaces": ["envoy-gateway-system"]})

    assert probed(cluster).feature("gateway-proxies") == Feature(is_there=True)


def test_proxies_beside_their_gateway_need_nothing(kube: FakeKube, cluster: Cluster) -> None:
    put_proxy(kube, "slipway-gateway", ISTIO)

    assert probed(cluster).feature("gateway-proxies") == Feature(is_there=True)


def test_without_permission_to_list_pods_engines_stay_offered(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.forbidden = {"pods"}

    read = probed(cluster)

    assert read.feature("gateway-proxies").is_there is None
    assert read.offers_engine("triton").ok is True
