"""A cluster whose Gateway is Istio's, and its policies in a real Envoy as Istio translates them."""

from __future__ import annotations

from typing import Any, Final

from deployments.models import Deployment
from deployments.spec.domain.serving_spec import Network
from fleet.clusters.domain.capabilities import ISTIO_TOKENS, Capabilities, Feature
from fleet.localcluster.kinds import (
    AUTHORIZATION_POLICY,
    HTTP_ROUTE,
    REQUEST_AUTHENTICATION,
    Kind,
)
from fleet.localcluster.store import Store
from fleet.models import Cluster
from tests.deployments.world import World

ACCESS: Final = ("AuthorizationPolicy", "slipway-gateway", "vision.detector")
TOKENS: Final = ("RequestAuthentication", "slipway-gateway", "slipway-callers")
KINDS: Final[tuple[Kind, ...]] = (REQUEST_AUTHENTICATION, AUTHORIZATION_POLICY, HTTP_ROUTE)


def with_istio(world: World) -> None:
    row = Cluster.objects.get(pk=world.cluster_id)
    found = Capabilities.from_json(row.capabilities)
    features = {**found.features, "caller-keys": Feature(is_there=True, version="v1")}
    row.capabilities = Capabilities(features=features, key_check=ISTIO_TOKENS).to_json()
    row.save()


def keyed(world: World) -> Deployment:
    with_istio(world)
    return world.serving(network=Network(access="keys"))


def principals(world: World) -> list[str]:
    """Who is let through; every rule of the policy names the same."""
    rules = world.cluster.objects[ACCESS]["spec"]["rules"]
    named = [
        rule["from"][0]["source"]["notRequestPrincipals"] if "from" in rule else []
        for rule in rules
    ]
    assert all(names == named[0] for names in named)
    return list(named[0])


def copy_policies(world: World, store: Store) -> None:
    """What the portal wrote for Istio, as it is on the cluster now."""
    for kind in KINDS:
        current = {
            (namespace, name): item
            for (named, namespace, name), item in world.cluster.objects.items()
            if named == kind.kind
        }
        for item in store.list(kind):
            place = (item["metadata"]["namespace"], item["metadata"]["name"])
            if place not in current and kind is not HTTP_ROUTE:
                store.delete(kind, *place)
        for (namespace, name), item in current.items():
            body: dict[str, Any] = {
                "metadata": {"namespace": namespace, "name": name},
                "spec": item["spec"],
            }
            live = store.find(kind, namespace, name)
            if live is None:
                store.create(kind, body)
            elif live["spec"] != item["spec"]:
                store.replace(kind, {**live, "spec": item["spec"]})
