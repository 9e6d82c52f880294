"""A cluster whose Gateway is Istio's."""

from __future__ import annotations

from typing import Final

from deployments.models import Deployment
from deployments.spec.domain.serving_spec import Network
from fleet.clusters.domain.capabilities import ISTIO_TOKENS, Capabilities, Feature
from fleet.models import Cluster
from tests.deployments.world import World

ACCESS: Final = ("AuthorizationPolicy", "slipway-gateway", "vision.detector")
TOKENS: Final = ("RequestAuthentication", "slipway-gateway", "slipway-callers")


def with_istio(world: World) -> None:
    row = Cluster.objects.get(pk=world.cluster_id)
    found = Capabilities.from_json(row.capabilities)
    features = {**found.features, "caller-keys": Feature(is_there=True, version="v1")}
    row.capabilities = Capabilities(features=features, key_check=ISTIO_TOKENS).to_json()
    row.save()


def keyed(world: World) -> Deployment:
    return world.play("keyed on istio", lambda: _keyed(world))


def _keyed(world: World) -> Deployment:
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
