"""Golden requests and trials come from the API server, whose networks the policy must name."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.services import capabilities
from fleet.models import Cluster
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db


def _api_servers(*addresses: str) -> dict[str, Any]:
    return {
        "kind": "EndpointSlice",
        "metadata": {"namespace": "default", "name": "kubernetes"},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]} for address in addresses],
    }


def _probed(cluster: Cluster, *networks: str) -> Capabilities:
    Cluster.objects.update(serving={"control_plane_cidrs": list(networks)} if networks else {})
    capabilities.probe(cluster_id=cluster.pk)
    return Capabilities.from_json(Cluster.objects.get().capabilities)


def test_api_servers_outside_the_networks_are_named_with_the_fix(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.put(_api_servers("10.0.9.4", "10.0.1.7"))

    nowhere = _probed(cluster)
    one = _probed(cluster, "10.0.1.0/24", "fd00::/64")
    both = _probed(cluster, "10.0.0.0/16")

    assert nowhere.feature("pod-proxy") == Feature(is_there=True), "its addresses are admitted"
    assert nowhere.api_server_cidrs == ("10.0.1.7/32", "10.0.9.4/32")
    assert one.feature("pod-proxy").why.endswith("at 10.0.9.4")
    assert both.feature("pod-proxy") == Feature(is_there=True)
    assert (
        "Network policies do not admit the API server at 10.0.9.4. API server access is needed for "
        "golden requests and trials."
    ) in one.notes


def test_the_portals_own_networks_hold_where_the_cluster_states_none(
    kube: FakeKube, cluster: Cluster, settings: Any
) -> None:
    kube.put(_api_servers("10.0.1.7"))
    settings.SLIPWAY_CONTROL_PLANE_CIDRS = "10.0.1.0/24"

    assert _probed(cluster).feature("pod-proxy").is_there is True
    assert _probed(cluster, "10.7.0.0/16").feature("pod-proxy").is_there is False


def test_an_address_that_cannot_be_read_is_not_known(kube: FakeKube, cluster: Cluster) -> None:
    absent = _probed(cluster).feature("pod-proxy")
    kube.forbidden.add("endpointslices")
    forbidden = _probed(cluster).feature("pod-proxy")

    assert absent == Feature(
        None, why="The cluster does not state the addresses of its API server."
    )
    assert forbidden.is_there is None
    assert forbidden.why.endswith("get endpointslices.discovery.k8s.io kubernetes in default.")


def test_addresses_that_were_known_are_kept_while_they_cannot_be_read(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.put(_api_servers("10.0.9.4", "fd00::7"))
    known = _probed(cluster).api_server_cidrs
    kube.forbidden.add("endpointslices")

    assert _probed(cluster).api_server_cidrs == known == ("10.0.9.4/32", "fd00::7/128")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "api.example.org"])
def test_what_no_pod_is_reached_from_is_no_address(
    kube: FakeKube, cluster: Cluster, address: str
) -> None:
    kube.put(_api_servers(address))

    found = _probed(cluster)

    assert found.api_servers is None
    assert found.feature("pod-proxy").is_there is False


def test_the_embedded_cluster_enforces_no_policy(
    kube: FakeKube, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube, "version", lambda: "v1.34.0+slipway.local")
    kube.put(_api_servers("127.0.0.1"))

    assert _probed(cluster).feature("pod-proxy") == Feature(is_there=True)
