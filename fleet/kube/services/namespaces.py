"""Who owns namespaces, and taking them over. Raises the errors of fleet.kube.domain.errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fleet.kube.domain import ownership
from fleet.kube.domain.errors import NotAllowed, ObjectNotFound
from fleet.kube.domain.ownership import Fence
from fleet.kube.domain.resource_types import DEPLOYMENT, HTTP_ROUTE, INFERENCE_SERVICE, ResourceType
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients, installation
from fleet.kube.services import ownership as owners
from fleet.models import Cluster

Json = dict[str, Any]
NAMESPACE: Final = owners.NAMESPACE
# The portal may list these in the whole cluster.
_LISTED: Final = (INFERENCE_SERVICE, DEPLOYMENT, HTTP_ROUTE)


def list_refused(*, cluster_id: int, names: Sequence[str]) -> list[str]:
    """Say for each namespace that is not, and does not become, the portal's why."""
    writer = owners.Writer(cluster_id)
    problems = [writer.describe_owner(name) for name in names]
    return [problem for problem in problems if problem]


def highest_fence(*, cluster_id: int, names: Sequence[str]) -> int:
    """Return the highest number that one of the portal's namespaces carries."""
    client, identity = clients.client_for(cluster_id), installation.read().identity
    fences = [
        fence.number
        for item in (_get(client, name) for name in names)
        if item is not None
        and ownership.owner_of(item) == identity
        and (fence := Fence.read(item)) is not None
    ]
    return max(fences, default=0)


def stamp(*, cluster_id: int, names: Sequence[str]) -> list[str]:
    """Write the present fence to the portal's namespaces, which stops every other copy. Returns them."""
    client, current = clients.client_for(cluster_id), installation.read()
    stamped = []
    for name in names:
        item = _get(client, name)
        if item is not None and ownership.owner_of(item) == current.identity:
            _label(client, NAMESPACE, None, name, current.identity, current.fence)
            stamped.append(name)
    return stamped


def take_over(
    *, cluster_id: int, name: str, kinds: Sequence[tuple[str, str]], dry_run: bool
) -> list[str]:
    """Make a namespace and the objects of Slipway in it the portal's. Returns what is, or would be, changed.

    The namespace goes last: until then the other installation goes on.
    """
    client, current = clients.client_for(cluster_id), installation.read()
    current.require_active()
    namespace = _get(client, name)
    if namespace is None:
        raise ObjectNotFound(f"There is no namespace {name}.")
    changed = []
    for item, resource in _managed(client, name, kinds):
        if ownership.owner_of(item) in ("", current.identity):
            continue
        changed.append(f"{item['kind']} {item['metadata']['name']}")
        if not dry_run:
            _label(client, resource, name, item["metadata"]["name"], current.identity, None)
    if ownership.owner_of(namespace) != current.identity:
        changed.append(f"Namespace {name}")
        if not dry_run:
            fence = installation.raise_fence()
            _label(client, NAMESPACE, None, name, current.identity, fence)
    return changed


def refresh_others(cluster_id: int) -> None:
    """Record what other installations have on the cluster."""
    client, identity = clients.client_for(cluster_id), installation.read().identity
    items: list[Json] = []
    for resource in _LISTED:
        try:
            items += client.list_all(resource, labels=ownership.MANAGED_BY).items
        except (ObjectNotFound, NotAllowed):
            continue
    others = [item.to_json() for item in ownership.summarise_others(items, identity)]
    Cluster.objects.filter(pk=cluster_id).exclude(other_installations=others).update(
        other_installations=others
    )


def _managed(
    client: KubeClient, namespace: str, kinds: Sequence[tuple[str, str]]
) -> list[tuple[Json, ResourceType]]:
    found = []
    for kind in kinds:
        try:
            resource = client.resource_type(*kind)
            listed = client.list_all(resource, namespace=namespace, labels=ownership.MANAGED_BY)
        except (ObjectNotFound, NotAllowed):
            continue
        own = [item for item in listed.items if not item["metadata"].get("ownerReferences")]
        found += [(item, resource) for item in own]
    return found


def _label(
    client: KubeClient,
    resource: ResourceType,
    namespace: str | None,
    name: str,
    identity: str,
    fence: Fence | None,
) -> None:
    metadata: Json = {"labels": {ownership.LABEL: identity}}
    if fence is not None:
        metadata["annotations"] = {ownership.FENCE: str(fence)}
    client.merge_patch(resource, namespace, name, {"metadata": metadata})


def _get(client: KubeClient, name: str) -> Json | None:
    try:
        return client.get(NAMESPACE, None, name)
    except ObjectNotFound:
        return None
