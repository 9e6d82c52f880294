"""The adviser ranks GPUs that pods claim beside those of the device plugin, once each."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from deployments.models import ModelVersion
from deployments.preflight.services import gpu_advice
from deployments.preflight.services.gpu_advice import Load
from deployments.sizing.domain.ranking import Advice, RejectionReason
from fleet.models import Cluster, InstancePrice, Node
from fleet.observation.services import record
from portal.accounts.models import Team
from tests.deployments.dra_world import dra
from tests.deployments.world import World

__all__ = ["dra"]
PARTS = {"weights": 700, "activations": 2000, "runtime": 450}


@pytest.fixture(autouse=True)
def read_files(dra: World) -> None:
    Team.objects.update(monthly_budget_amount=0)
    ModelVersion.objects.update(signature={"vram_parts_mib": PARTS}, vram_estimate_mib=3152)


def advice(dra: World) -> Advice:
    return gpu_advice.advise(
        actor=dra.member, version_id=dra.version1.pk, cluster_id=dra.cluster_id, load=Load()
    )


def kinds(choices: Any) -> list[tuple[str, str, bool, int | None]]:
    return [
        (c.offer.instance_type, c.offer.gpu_resource, c.offer.is_claimed, c.offer.free_replicas)
        for c in choices
    ]


def test_devices_are_ranked_with_their_price_and_what_is_free(dra: World) -> None:
    found = advice(dra)

    assert kinds(found.ranked) == [
        ("g5.xlarge", "nvidia.com/gpu", False, found.ranked[0].offer.free_replicas),
        ("p4de.24xlarge", "nvidia.com/mig-1g.10gb", True, 1),
        ("p4de.24xlarge", "nvidia.com/gpu", True, 1),
        ("p4de.24xlarge", "nvidia.com/gpu", True, 0),
    ]
    assert [choice.offer.gpus for choice in found.ranked] == [1, 1, 1, 2]
    whole = found.ranked[2].offer
    assert whole.usd_per_hour_amount == (Decimal("27.447") / 3).quantize(Decimal("0.000001"))
    assert whole.title == "1 \N{MULTIPLICATION SIGN} A100-SXM4-80GB"
    assert all(
        choice.offer.instance_type != "p4de.24xlarge" or choice.offer.is_claimed
        for choice in (*found.ranked, *found.rejected)
    )


def test_rest_says_which_are_claimed(dra: World) -> None:
    client = Client()
    client.force_login(dra.member)
    body = {"version_id": dra.version1.pk, "cluster_id": dra.cluster_id}

    answer = client.post("/api/v1/sizing", body, content_type="application/json").json()

    found = [(row["instance_type"], row["is_claimed"], row["also_on"]) for row in answer["ranked"]]
    assert found == [
        # Claimed or not is part of the request: the one is no further type of the other.
        ("g5.xlarge", False, []),
        ("p4de.24xlarge", True, []),
        ("p4de.24xlarge", True, []),
        ("p4de.24xlarge", True, []),
    ]


def test_a_gpu_that_plugin_and_driver_offer_is_priced_as_one(dra: World) -> None:
    node = Node.objects.get(name="dra-1")
    node.allocatable = {**node.allocatable, "nvidia.com/gpu": "3"}
    node.save()

    found = [c.offer for c in advice(dra).ranked if c.offer.instance_type == "p4de.24xlarge"]

    whole = [offer for offer in found if offer.gpu_resource == "nvidia.com/gpu" and offer.gpus == 1]
    assert [offer.is_claimed for offer in whole] == [False, True], "of equal price, no claim first"
    assert {offer.usd_per_hour_amount for offer in whole} == {Decimal("9.149000")}


def test_what_cannot_be_read_is_not_said_to_be_free(dra: World) -> None:
    record.forget_devices(cluster_id=dra.cluster_id)

    claimed = [c.offer for c in advice(dra).ranked if c.offer.is_claimed]

    assert [offer.free_replicas for offer in claimed] == [None, None, None]


def test_a_cluster_without_the_class_offers_no_claims(dra: World) -> None:
    cluster = Cluster.objects.get(pk=dra.cluster_id)
    why = "The cluster has no DeviceClass gpu.nvidia.com"
    cluster.capabilities["features"]["device-claims"] = {
        "is_there": False,
        "version": "",
        "why": why,
    }
    cluster.save()

    found = advice(dra)

    assert [c.offer.instance_type for c in found.ranked] == ["g5.xlarge"]
    refusals = [c.refusals[0] for c in found.rejected if c.offer.is_claimed]
    assert [one.reason for one in refusals] == [RejectionReason.NOT_OFFERED] * len(refusals)
    assert why in refusals[0].message


def test_without_prices_they_come_last(dra: World) -> None:
    InstancePrice.objects.filter(instance_type="p4de.24xlarge").delete()

    found = advice(dra)

    assert [c.offer.usd_per_hour_amount for c in found.ranked][1:] == [None, None, None]
