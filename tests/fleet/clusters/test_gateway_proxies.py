"""Proxies of a Gateway that run in a namespace of their own: named before a request is lost."""

from __future__ import annotations

import pytest

from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.services import capabilities, serving_policy
from fleet.kube.domain.errors import NotAllowed
from fleet.models import Cluster
from fleet.observation.services import sweep
from tests.accounts import make_user
from tests.fleet import objects
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db
ENVOY_GATEWAY = {"gateway.envoyproxy.io/owning-gateway-name": "slipway"}
ISTIO = {"gateway.networking.k8s.io/gateway-name": "slipway"}


def put_proxy(kube: FakeKube, namespace: str, labels: dict[str, str]) -> None:
    proxy = objects.pod("proxy-1", namespace=namespace)
    proxy["metadata"]["labels"] = labels
    kube.put(proxy)


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


def test_a_changed_policy_is_compared_by_the_next_sweep(kube: FakeKube, cluster: Cluster) -> None:
    put_proxy(kube, "envoy-gateway-system", ENVOY_GATEWAY)
    probed(cluster)
    admin = make_user(username="admin", is_platform_admin=True)

    serving_policy.set_policy(
        actor=admin,
        cluster_id=cluster.pk,
        serving=ServingPolicy(gateway_namespaces=("envoy-gateway-system",)),
    )
    sweep.observe_due()

    stored = Capabilities.from_json(Cluster.objects.get().capabilities)
    assert stored.feature("gateway-proxies") == Feature(is_there=True)


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


STATS = {"prometheus.io/port": "19001", "prometheus.io/path": "/stats/prometheus"}


def put_scraped(kube: FakeKube, **annotations: str) -> None:
    put_proxy(kube, "slipway-gateway", ENVOY_GATEWAY)
    proxy = kube.objects["Pod", "slipway-gateway", "proxy-1"]
    proxy["metadata"]["annotations"] = {**STATS, **annotations}
    proxy["status"] = {"phase": "Running"}


def test_requests_are_counted_where_a_proxy_states_a_port_for_its_metrics(
    kube: FakeKube, cluster: Cluster
) -> None:
    put_scraped(kube)
    kube.pages["proxy-1"] = "envoy_server_live 1"

    assert probed(cluster).feature("gateway-metrics") == Feature(is_there=True)
    [(namespace, pod, port, path)] = kube.proxied
    assert (namespace, pod, port) == ("slipway-gateway", "proxy-1", 19001)
    assert path.startswith("stats/prometheus?filter=")


@pytest.mark.parametrize(
    "annotations", [{"prometheus.io/scrape": "false"}, {"prometheus.io/port": ""}]
)
def test_a_proxy_that_is_not_to_be_scraped_is_not_read(
    kube: FakeKube, cluster: Cluster, annotations: dict[str, str]
) -> None:
    put_scraped(kube, **annotations)

    assert probed(cluster).feature("gateway-metrics") == Feature(
        is_there=False,
        why="No proxy of Gateway slipway-gateway/slipway states a port for its metrics",
    )
    assert kube.proxied == []


def test_without_the_right_to_read_proxies_the_missing_permission_is_named(
    kube: FakeKube, cluster: Cluster
) -> None:
    put_scraped(kube)
    kube.pages["proxy-1"] = NotAllowed("pods/proxy is forbidden")

    assert probed(cluster).feature("gateway-metrics") == Feature(
        None, why="The portal's role has no permission to get pods/proxy in slipway-gateway."
    )
