"""`manage.py adopt`: what a copy of the database would do, and the decision about it."""

from __future__ import annotations

import copy
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from rest_framework.test import APIClient

from deployments.models import Deployment
from fleet.kube.domain.ownership import FENCE, LABEL
from fleet.kube.services import installation, namespaces
from fleet.models import Installation
from portal.core import clock
from portal.doctor.checks import clusters as doctor
from tests.deployments.lifecycle.test_two_installations import OTHER, canary, of_other, own
from tests.deployments.signed_in import signed_in
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "signed_in", "world"]


def adopt(*options: str) -> str:
    out = StringIO()
    call_command("adopt", *options, stdout=out)
    return out.getvalue()


def suspended(world: World) -> Deployment:
    deployment = world.serving()
    canary(world, deployment)
    Installation.objects.update(database="postgresql:elsewhere:1")
    return deployment


def test_a_dry_run_says_what_going_on_would_touch_and_touches_nothing(world: World) -> None:
    deployment = suspended(world)
    # The backup is older than what runs: it knows no second revision, and another weight.
    Deployment.objects.filter(pk=deployment.pk).update(candidate_revision=None)
    before = copy.deepcopy(world.cluster.objects)

    said = adopt()

    assert "This portal runs on a copy of its database" in said
    assert "eks-test: 0 deployments stay as they are" in said
    assert "vision/detector: deletes r2" in said
    assert "Nothing was changed." in said
    assert world.cluster.objects == before
    assert installation.read().suspended_reason


def test_a_database_that_is_taken_over_goes_on_and_its_copies_stop(world: World) -> None:
    suspended(world)
    old = installation.read()

    said = adopt("--take-over")

    assert "eks-test: took over vision" in said
    now = installation.read()
    assert (now.identity, now.suspended_reason) == (old.identity, "")
    fence = world.cluster.objects["Namespace", "", "vision"]["metadata"]["annotations"][FENCE]
    assert int(fence.partition(".")[0]) > old.fence.number
    # The other copy still has the numbers from before.
    Installation.objects.update(fence=old.fence.number, fence_nonce=old.fence.nonce)
    world.clock.move(400)
    Deployment.objects.update(desired_generation=99, next_check_at=clock.now(), is_stopped=True)
    before = copy.deepcopy(world.cluster.objects)
    world.work()
    assert world.cluster.objects == before
    assert "newer copy" in installation.read().suspended_reason


def test_nothing_is_taken_over_while_a_cluster_is_away(world: World) -> None:
    from fleet.kube.domain.errors import Unreachable

    suspended(world)
    world.cluster.fail_with = Unreachable("connection refused")

    with pytest.raises(CommandError, match="could not be read"):
        adopt("--take-over")

    assert installation.read().suspended_reason


def test_a_separate_installation_leaves_all_alone(world: World) -> None:
    deployment = suspended(world)
    old, before = own(), copy.deepcopy(world.cluster.objects)

    said = adopt("--separate")

    assert own() != old
    assert own() in said
    Deployment.objects.filter(pk=deployment.pk).update(
        desired_generation=99, next_check_at=clock.now()
    )
    world.clock.move(400)
    world.work()
    assert world.cluster.objects == before
    deployment.refresh_from_db()
    assert f"another installation of Slipway ({old})" in deployment.state_reason


def test_a_namespace_of_another_installation_is_taken_over_on_request(world: World) -> None:
    before = of_other(world)

    said = adopt("--namespace", "eks-test/vision")
    assert "Would take over InferenceService theirs-r7" in said
    assert world.cluster.objects == before

    said = adopt("--namespace", "eks-test/vision", "--take-over")

    assert "Took over Namespace vision" in said
    owners = {item["metadata"]["labels"][LABEL] for item in world.cluster.objects.values()}
    assert owners == {own()}
    world.serving()
    world.clock.move(400)
    world.work()
    # No row is about them: they stay.
    assert ("InferenceService", "vision", "theirs-r7") in world.cluster.objects


@pytest.mark.parametrize("place", ["nowhere/vision", "eks-test", "eks-test/"])
def test_a_place_that_is_none_is_refused(world: World, place: str) -> None:
    with pytest.raises(CommandError, match="CLUSTER/NAMESPACE"):
        adopt("--namespace", place)


def test_admins_see_the_identity_and_other_installations(world: World, signed_in: Any) -> None:
    of_other(world)
    namespaces.refresh_others(world.cluster_id)
    Installation.objects.update(suspended_reason="Suspended for a test.")

    address = reverse("admin-cluster", kwargs={"cluster_id": world.cluster_id})
    text = page(signed_in(world.admin).get(address)).text
    assert own() in text
    assert OTHER in text
    assert "Suspended for a test." in text
    api = APIClient()
    api.force_authenticate(world.admin)
    shown = api.get(f"/api/v1/clusters/{world.cluster_id}").json()
    assert shown["installation"] == {
        "identity": own(),
        "suspended_reason": "Suspended for a test.",
    }
    assert shown["other_installations"] == [
        {"identity": OTHER, "namespaces": ["vision"], "objects": 2}
    ]
    api.force_authenticate(world.member)
    assert api.get(f"/api/v1/clusters/{world.cluster_id}").json()["other_installations"] == []
    lines = list(doctor.identity())
    assert [line.detail for line in lines] == [
        "Suspended for a test.",
        f"{OTHER} has 2 objects in vision",
    ]
