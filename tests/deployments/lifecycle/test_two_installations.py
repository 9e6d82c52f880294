"""Two portals on one cluster: neither touches what the other wrote."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.models import Deployment
from fleet.kube.domain.errors import InstallationSuspended, NotOwned
from fleet.kube.domain.ownership import FENCE, LABEL
from fleet.kube.domain.resource_types import NODE_POOL
from fleet.kube.services import installation, node_pools, objects
from fleet.models import Installation
from portal.core import clock
from portal.core.errors import Invalid
from tests.deployments.canaries import STEPS
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE

OTHER = "0b0b0b0b-0000-4000-8000-000000000002"
ROUTE = {"api_version": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute"}


def own() -> str:
    return installation.read().identity


def of_other(world: World, *, is_labelled: bool = True) -> dict[Any, Any]:
    """Another portal's deployment 1 in the same namespace: returns the objects as it left them."""
    namespace = world.team.slug
    labels = {
        "app.kubernetes.io/managed-by": "slipway",
        "slipway.dev/team": namespace,
        "slipway.dev/deployment": "theirs",
        "slipway.dev/deployment-id": "1",
        "slipway.dev/revision": "7",
        **({LABEL: OTHER} if is_labelled else {}),
    }
    for kind, name in (
        ("InferenceService", "theirs-r7"),
        ("HTTPRoute", "theirs"),
        ("Service", "theirs-r7"),
        ("NetworkPolicy", "theirs"),
    ):
        world.cluster.objects[kind, namespace, name] = {
            "apiVersion": {
                "InferenceService": "serving.kserve.io/v1beta1",
                "HTTPRoute": "gateway.networking.k8s.io/v1",
                "Service": "v1",
                "NetworkPolicy": "networking.k8s.io/v1",
            }[kind],
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": dict(labels),
                "generation": 1,
            },
            "spec": {"rules": [{"backendRefs": []}]},
        }
    world.cluster.objects["Namespace", "", namespace] = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace,
            "generation": 1,
            "labels": {
                "app.kubernetes.io/managed-by": "slipway",
                **({LABEL: OTHER} if is_labelled else {}),
            },
        },
    }
    return copy.deepcopy(world.cluster.objects)


def canary(world: World, deployment: Deployment, *, is_applied: bool = True) -> None:
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan=AT_ONCE,
    )
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    if is_applied:
        world.work()


def test_everything_that_is_written_carries_the_identity(world: World) -> None:
    world.serving()

    labels = {
        key[:1] + key[2:]: item["metadata"].get("labels", {}).get(LABEL)
        for key, item in world.cluster.objects.items()
        if key[0] != "Pod"
    }
    assert set(labels.values()) == {own()}
    namespace = world.cluster.objects["Namespace", "", world.team.slug]
    assert namespace["metadata"]["annotations"][FENCE]


@pytest.mark.parametrize("is_labelled", [True, False])
def test_a_second_portal_changes_nothing_of_the_first_one(
    world: World, *, is_labelled: bool
) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    deployment = deployment_of(change)
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    before = of_other(world, is_labelled=is_labelled)
    world.cluster.calls.clear()

    world.work()
    for _ in range(4):
        world.clock.move(400)
        world.work()

    deployment.refresh_from_db()
    assert world.cluster.objects == before
    assert world.cluster.writes == []
    assert "Nothing was changed" in deployment.state_reason
    assert "manage.py adopt" in deployment.state_reason
    if is_labelled:
        assert OTHER in deployment.state_reason


@pytest.mark.parametrize("is_labelled", [True, False])
def test_a_request_for_anothers_namespace_is_refused(world: World, *, is_labelled: bool) -> None:
    of_other(world, is_labelled=is_labelled)

    with pytest.raises(Invalid, match=r"Nothing was changed.*manage\.py adopt"):
        requests.request_deploy(actor=world.member, draft=world.draft())

    assert not Deployment.objects.exists()


def test_what_is_lost_to_another_installation_is_left_alone_when_it_is_retired(
    world: World,
) -> None:
    deployment = world.serving()
    for item in world.cluster.objects.values():
        if item["metadata"].get("labels", {}).get(LABEL):
            item["metadata"]["labels"][LABEL] = OTHER
    before = copy.deepcopy(world.cluster.objects)

    Deployment.objects.filter(pk=deployment.pk).update(
        is_retiring=True, desired_generation=99, next_check_at=clock.now()
    )
    world.work()

    deployment.refresh_from_db()
    assert deployment.is_retired
    assert world.cluster.objects == before


WRITES: dict[str, Callable[[int, str], object]] = {
    "apply": lambda cluster_id, ns: objects.apply(
        cluster_id=cluster_id,
        manifests=[
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": ns}}
        ],
        force=True,
    ),
    "apply a Secret": lambda cluster_id, ns: objects.apply(
        cluster_id=cluster_id,
        manifests=[
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": ns}}
        ],
    ),
    "apply the namespace": lambda cluster_id, ns: objects.apply(
        cluster_id=cluster_id,
        manifests=[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}}],
        force=True,
    ),
    "dry run": lambda cluster_id, ns: objects.dry_run(
        cluster_id=cluster_id,
        manifests=[
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": ns}}
        ],
    ),
    "delete": lambda cluster_id, ns: objects.delete(
        cluster_id=cluster_id, **ROUTE, namespace=ns, name="theirs"
    ),
    "delete a Secret": lambda cluster_id, ns: objects.delete(
        cluster_id=cluster_id, api_version="v1", kind="Secret", namespace=ns, name="a"
    ),
    "patch a node pool": lambda cluster_id, _: node_pools.patch(
        cluster_id=cluster_id, name="pool", body={"spec": {}}
    ),
    "create a node pool": lambda cluster_id, _: node_pools.create(
        cluster_id=cluster_id,
        manifest={
            "apiVersion": NODE_POOL.api_version,
            "kind": "NodePool",
            "metadata": {"name": "pool"},
        },
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_write_to_what_is_anothers_is_refused(
    world: World, write: Callable[[int, str], object]
) -> None:
    of_other(world)
    world.cluster.objects["NodePool", "", "pool"] = {
        "apiVersion": NODE_POOL.api_version,
        "kind": "NodePool",
        "metadata": {"name": "pool", "labels": {LABEL: OTHER}},
    }
    world.cluster.objects["Secret", world.team.slug, "a"] = {
        "kind": "Secret",
        "metadata": {"name": "a", "namespace": world.team.slug},
    }
    before = copy.deepcopy(world.cluster.objects)

    with pytest.raises(NotOwned, match=f"another installation of Slipway \\({OTHER}\\)"):
        write(world.cluster_id, world.team.slug)

    assert world.cluster.objects == before


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_suspended_portal_writes_nothing(
    world: World, write: Callable[[int, str], object]
) -> None:
    world.cluster.objects["HTTPRoute", world.team.slug, "theirs"] = {
        "kind": "HTTPRoute",
        "metadata": {"name": "theirs", "namespace": world.team.slug},
    }
    installation.read()
    Installation.objects.update(database="postgresql:elsewhere:1")
    before = copy.deepcopy(world.cluster.objects)

    with pytest.raises(InstallationSuspended, match=r"manage\.py adopt"):
        write(world.cluster_id, world.team.slug)

    assert world.cluster.objects == before


def test_objects_from_before_the_identity_are_taken_over_once(world: World) -> None:
    deployment = world.serving()
    for item in world.cluster.objects.values():
        item["metadata"].get("labels", {}).pop(LABEL, None)
        item["metadata"].get("annotations", {}).pop(FENCE, None)
    pods = world.cluster.objects["InferenceService", world.team.slug, "detector-r1"]

    canary(world, deployment)

    namespace = world.cluster.objects["Namespace", "", world.team.slug]
    assert namespace["metadata"]["labels"][LABEL] == own()
    # A label that KServe copies to pods would restart them.
    assert LABEL not in pods["metadata"]["labels"]
    candidate = world.cluster.objects["InferenceService", world.team.slug, "detector-r2"]
    assert candidate["metadata"]["labels"][LABEL] == own()


@pytest.mark.parametrize("ahead", [1, 0])
def test_a_restored_copy_stops_before_it_writes(world: World, ahead: int) -> None:
    deployment = world.serving()
    namespace = world.cluster.objects["Namespace", "", world.team.slug]["metadata"]
    number, _, _ = namespace["annotations"][FENCE].partition(".")
    # A change that was approved before the copy was made.
    canary(world, deployment, is_applied=False)
    newest = installation.read().fence.number
    assert int(number) <= newest
    namespace["annotations"][FENCE] = f"{newest + ahead}.{uuid.uuid4().hex[:8]}"
    before = copy.deepcopy(world.cluster.objects)
    world.cluster.calls.clear()

    world.work()
    world.clock.move(400)
    world.work()

    deployment.refresh_from_db()
    assert world.cluster.objects == before
    assert "A newer copy of this portal's database wrote to" in deployment.state_reason
    assert installation.read().suspended_reason

    installation.resume(above=newest + ahead)
    world.clock.move(400)
    world.work()
    assert ("apply", "InferenceService", "detector-r2") in world.cluster.calls
