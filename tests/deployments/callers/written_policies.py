"""What the portal wrote for the gateway, copied to the embedded cluster, whose gateway programs a real Envoy."""

from __future__ import annotations

from typing import Any, Final

from slipway_localcluster.kinds import (
    AUTHORIZATION_POLICY,
    BACKEND_TRAFFIC_POLICY,
    HTTP_ROUTE,
    REQUEST_AUTHENTICATION,
    SECRET,
    SECURITY_POLICY,
    Kind,
)
from slipway_localcluster.store import Store
from tests.deployments.world import World

_POLICIES: Final[tuple[Kind, ...]] = (
    SECRET,
    SECURITY_POLICY,
    BACKEND_TRAFFIC_POLICY,
    REQUEST_AUTHENTICATION,
    AUTHORIZATION_POLICY,
)
_CONTENT: Final = ("spec", "data")


def copy(world: World, store: Store) -> None:
    """As it is on the recorded cluster now. Policies that are gone there are deleted; routes of others stay."""
    for kind in (*_POLICIES, HTTP_ROUTE):
        current = {
            (namespace, name): item
            for (named, namespace, name), item in world.cluster.objects.items()
            if named == kind.kind
        }
        if kind is not HTTP_ROUTE:
            _delete_others(store, kind, current)
        for (namespace, name), item in current.items():
            content: dict[str, Any] = {field: item[field] for field in _CONTENT if field in item}
            live = store.find(kind, namespace, name)
            if live is None:
                metadata = {"namespace": namespace, "name": name}
                store.create(kind, {"metadata": metadata, **content})
            elif {field: live.get(field) for field in content} != content:
                store.replace(kind, {**live, **content})


def _delete_others(store: Store, kind: Kind, current: dict[tuple[str, str], Any]) -> None:
    for item in store.list(kind):
        place = (item["metadata"]["namespace"], item["metadata"]["name"])
        if place not in current:
            store.delete(kind, *place)
