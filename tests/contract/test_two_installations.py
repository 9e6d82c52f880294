"""Two portals with the same team and the same primary keys on one API server."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.delivery.domain import owned_kinds
from deployments.models import Deployment
from fleet.kube.domain.errors import NotAllowed, NotOwned, ObjectNotFound
from fleet.kube.domain.ownership import FENCE, LABEL
from fleet.kube.services import clients, installation, namespaces, objects
from fleet.models import Installation
from portal.core import clock
from tests.contract.delivered import Delivered, cluster_calls, delivered, moving_clock, world

__all__ = ["cluster_calls", "delivered", "moving_clock", "world"]
# Kubernetes itself puts them into each namespace.
OF_EACH_NAMESPACE = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}
KINDS = (*owned_kinds.WORKLOADS, owned_kinds.ROUTE, *owned_kinds.DEPENDENT_OBJECTS)


def stored(delivered: Delivered) -> dict[tuple[str, str], Any]:
    """Return uid, labels, spec and time of deletion of all that somebody wrote into the namespace."""
    client = clients.client_for(delivered.world.cluster_id)
    found = {}
    for kind in KINDS:
        try:
            items = client.list_all(client.resource_type(*kind), namespace=delivered.namespace)
        except (ObjectNotFound, NotAllowed):
            continue
        for item in items.items:
            meta = item["metadata"]
            key = (item["kind"], meta["name"])
            # Controllers write what has an owner.
            if key in OF_EACH_NAMESPACE or meta.get("ownerReferences"):
                continue
            found[key] = (
                meta["uid"],
                meta.get("labels", {}),
                item.get("spec"),
                meta.get("deletionTimestamp"),
            )
    return found


def namespace_of(delivered: Delivered) -> dict[str, Any]:
    client = clients.client_for(delivered.world.cluster_id)
    kind = client.resource_type("v1", "Namespace")
    meta: dict[str, Any] = client.get(kind, None, delivered.namespace)["metadata"]
    return meta


def next_pass(delivered: Delivered, deployment: Deployment, **desired: Any) -> Deployment:
    Deployment.objects.filter(pk=deployment.pk).update(
        desired_generation=99, next_check_at=clock.now(), **desired
    )
    return delivered.reconcile_now(deployment)


def test_the_second_portal_changes_and_deletes_nothing(delivered: Delivered) -> None:
    deployment = delivered.deployed("ours")
    first = installation.read().identity
    before = stored(delivered)
    assert {labels[LABEL] for _, labels, _, _ in before.values()} == {first}
    meta = namespace_of(delivered)
    assert meta["labels"][LABEL] == first
    assert meta["annotations"][FENCE]

    second = installation.renew().identity
    next_pass(delivered, deployment)
    assert f"another installation of Slipway ({first})" in deployment.state_reason
    for kind, name in before:
        api_version = next(version for version, known in KINDS if known == kind)
        with pytest.raises(NotOwned):
            objects.delete(
                cluster_id=delivered.world.cluster_id,
                api_version=api_version,
                kind=kind,
                namespace=delivered.namespace,
                name=name,
            )
    next_pass(delivered, deployment, is_retiring=True)

    assert second != first
    assert deployment.is_retired
    assert stored(delivered) == before
    assert namespace_of(delivered)["resourceVersion"] == meta["resourceVersion"]
    # The fixture removes the namespace as the first portal.
    Installation.objects.update(identity=first)


def test_a_namespace_is_taken_over_on_request_only(delivered: Delivered) -> None:
    deployment = delivered.deployed("ours")
    installation.renew()

    changed = namespaces.take_over(
        cluster_id=delivered.world.cluster_id,
        name=delivered.namespace,
        kinds=KINDS,
        dry_run=False,
    )
    assert f"Namespace {delivered.namespace}" in changed
    next_pass(delivered, deployment, is_retiring=True)
    next_pass(delivered, deployment)

    assert deployment.is_retired
    left = {key for key, (_, _, _, deleted) in stored(delivered).items() if not deleted}
    assert not {name for kind, name in left if kind in ("Deployment", "HTTPRoute")}


def test_a_copy_that_fell_behind_stops(delivered: Delivered) -> None:
    deployment = delivered.deployed("ours")
    copied = installation.read()
    objects.apply(
        cluster_id=delivered.world.cluster_id,
        manifests=[
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "newer", "namespace": delivered.namespace},
            }
        ],
    )
    before = stored(delivered)
    Installation.objects.update(fence=copied.fence.number, fence_nonce=copied.fence.nonce)

    next_pass(delivered, deployment, is_stopped=True)

    assert stored(delivered) == before
    assert "newer copy of this portal's database" in installation.read().suspended_reason
    installation.resume(above=copied.fence.number)
