"""What a request needs of the nodes: a type that exists, room, and the price of its capacity."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import preflight
from deployments.spec.domain.serving_spec import Placement
from fleet.models import InstancePrice, Node
from portal.core.errors import Invalid
from tests.deployments.refusals import refused
from tests.deployments.world import World


def checks(world: World, **changed: Any) -> dict[str, Check]:
    result = preflight.check(actor=world.member, draft=world.draft(**changed))
    return {check.name: check for check in result.checks}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("g5.xlagre", "g5.xlarge"), ("g5xlarge", "g5.xlarge"), ("g5.48xl", "g5.48xlarge")],
)
def test_unknown_instance_type_is_refused_with_the_nearest_known(
    world: World, typed: str, meant: str
) -> None:
    InstancePrice.objects.create(
        instance_type="g5.48xlarge",
        region="us-east-1",
        usd_per_hour_amount=Decimal("16.288"),
        gpu_name="a10g",
        gpu_count=8,
        gpu_memory_mib=24576,
        vcpu=192,
        memory_gib=768,
        allocatable_cpu="191450m",
        allocatable_memory="718987Mi",
        source="catalogue",
        valid_from=InstancePrice.objects.get().valid_from,
    )

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft(instance_type=typed))

    assert f"Did you mean {meant}?" in raised[0].fields["instance_type"]
    assert "Instance type" not in checks(world)


def test_what_no_node_can_hold_is_refused_and_the_resource_named(world: World) -> None:
    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft(memory="400Gi"))

    assert raised[0].fields["instance_type"] == (
        "A g5.xlarge node has 13.8 Gi memory, and a replica requests 400 Gi memory. "
        "Request less memory, or choose a larger instance type."
    )


def test_capacity_counts_cpu_and_memory(world: World) -> None:
    fits = checks(world, min_replicas=4, max_replicas=4)["Capacity now"]
    world.serving(cpu="3", memory="2Gi")
    Node.objects.filter(name="node-3").update(
        allocatable={"nvidia.com/gpu": "1", "cpu": "1", "memory": "14162Mi"}
    )
    short = checks(world, name="other", min_replicas=4, max_replicas=4)["Capacity now"]

    assert (fits.ok, fits.detail) == (True, "4 of this size fit now.")
    assert short.ok is False
    assert short.detail.startswith("3 of 4 fit now: not enough GPU or CPU")


def test_spot_is_priced_as_spot_or_not_at_all(world: World) -> None:
    spot: dict[str, Any] = {
        "placement": Placement(capacity="spot"),
        "min_replicas": 2,
        "max_replicas": 2,
    }
    unknown = preflight.check(actor=world.member, draft=world.draft(**spot))
    price = InstancePrice.objects.get()
    price.pk, price.capacity_type, price.usd_per_hour_amount = None, "spot", Decimal("0.4")
    price.save()
    known = preflight.check(actor=world.member, draft=world.draft(**spot))
    on_demand = preflight.check(actor=world.member, draft=world.draft())

    assert (unknown.cost.per_hour, unknown.cost.forecast) == (None, None)
    assert known.cost.per_hour == Decimal("0.800000")
    assert on_demand.cost.per_hour == Decimal("1.006000")
    capacity = next(check for check in known.checks if check.name == "Capacity now")
    assert capacity.ok is False
    assert capacity.detail == (
        "There is no spot g5.xlarge node in the cluster now: its 4 nodes are on-demand."
    )
