"""A request that names several instance types: room on any of them, the price of the dearest."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from deployments.approvals.domain import rules
from deployments.approvals.domain.rules import Rule
from deployments.changes.selectors import deployment_evidence
from deployments.changes.services import requests
from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check, Preflight
from deployments.preflight.services import gpu_advice, preflight
from deployments.preflight.services.gpu_advice import Load
from deployments.spec.domain.serving_spec import Placement
from fleet.models import InstancePrice, Node
from portal.core.errors import Invalid
from tests.deployments.refusals import refused
from tests.deployments.world import World

OTHER = "placement.other_instance_types"


def nodes_of(world: World, name: str, *, product: str, memory_mib: int, price: str) -> None:
    """Two nodes of a further instance type, and its price."""
    node = Node.objects.get(name="node-0")
    for number in (1, 2):
        node.pk, node.name, node.uid = None, f"{name}-{number}", f"{name}-{number}"
        node.instance_type, node.gpu_product, node.gpu_memory_mib = name, product, memory_mib
        node.labels = {
            **node.labels,
            "node.kubernetes.io/instance-type": name,
            "nvidia.com/gpu.product": product,
            "nvidia.com/gpu.memory": str(memory_mib),
        }
        node.save()
    row = InstancePrice.objects.get(instance_type="g5.xlarge")
    row.pk, row.instance_type, row.gpu_name = None, name, product
    row.usd_per_hour_amount, row.gpu_memory_mib = Decimal(price), memory_mib
    row.save()


@pytest.fixture
def l4(world: World) -> World:
    nodes_of(world, "g6.xlarge", product="NVIDIA-L4", memory_mib=23034, price="0.8048")
    return world


def read(**parts: int) -> None:
    """What the files of the versions say about GPU memory, in MiB."""
    ModelVersion.objects.update(
        signature={"vram_parts_mib": parts}, vram_estimate_mib=sum(parts.values())
    )


def checked(world: World, others: str, **changed: Any) -> Preflight:
    placement = Placement(other_instance_types=others)
    draft = world.draft(placement=placement, **changed)
    return preflight.check(actor=world.member, draft=draft)


def checks(world: World, others: str, **changed: Any) -> dict[str, Check]:
    return {check.name: check for check in checked(world, others, **changed).checks}


def test_capacity_counts_nodes_of_all_of_them(l4: World) -> None:
    alone = checks(l4, "", min_replicas=6, max_replicas=6)["Capacity now"]
    both = checks(l4, "g6.xlarge", min_replicas=6, max_replicas=6)["Capacity now"]

    assert (alone.ok, alone.detail[:14]) == (False, "4 of 6 fit now")
    assert (both.ok, both.detail) == (True, "6 of this size fit now.")


def test_the_price_is_a_range_and_the_dearest_counts(l4: World) -> None:
    cost = checked(l4, "g6.xlarge", min_replicas=2, max_replicas=3).cost

    assert (cost.cheapest_per_hour, cost.per_hour) == (Decimal("1.6096"), Decimal("2.012"))
    assert (cost.cheapest_month_min, cost.month_min) == (Decimal("1175.01"), Decimal("1468.76"))
    assert (cost.cheapest_month_max, cost.month_max) == (Decimal("1762.51"), Decimal("2203.14"))
    cheaper_first = checked(
        l4, "g5.xlarge", instance_type="g6.xlarge", min_replicas=2, max_replicas=3
    ).cost
    assert cheaper_first == cost
    assert checked(l4, "", min_replicas=2, max_replicas=3).cost.cheapest_per_hour is None


def test_a_price_that_is_missing_is_no_low_one(l4: World) -> None:
    InstancePrice.objects.filter(instance_type="g6.xlarge").delete()

    result = checked(l4, "g6.xlarge")

    assert (result.cost.per_hour, result.cost.cheapest_per_hour) == (None, None)
    assert next(check for check in result.checks if check.name == "Budget").ok is None


def test_a_rule_for_one_of_the_gpus_matches(l4: World) -> None:
    draft = l4.draft(placement=Placement(other_instance_types="g6.xlarge"))
    change = requests.request_deploy(actor=l4.member, draft=draft)

    facts = deployment_evidence.facts(change)

    assert change.gpu_name == "NVIDIA-A10G, NVIDIA-L4"
    assert facts.instance_types == ("g5.xlarge", "g6.xlarge")
    for pattern in ("l4", "a10g", "g6.*"):
        assert rules.matches(Rule(id=1, name="few", gpus=(pattern,)), facts)
    assert not rules.matches(Rule(id=1, name="few", gpus=("h100", "p5.*")), facts)


def test_an_unknown_other_type_is_refused_at_its_field(l4: World) -> None:
    draft = l4.draft(placement=Placement(other_instance_types="g6.xlage"))

    with refused(l4, Invalid) as raised:
        requests.request_deploy(actor=l4.member, draft=draft)

    assert "Did you mean g6.xlarge?" in raised[0].fields[OTHER]
    assert "instance_type" not in raised[0].fields


def test_a_type_that_is_too_small_for_a_replica_is_refused_at_its_field(l4: World) -> None:
    Node.objects.filter(instance_type="g6.xlarge").update(
        allocatable={"nvidia.com/gpu": "1", "cpu": "3920m", "memory": "6000Mi"}
    )

    with refused(l4, Invalid) as raised:
        requests.request_deploy(
            actor=l4.member, draft=l4.draft(placement=Placement(other_instance_types="g6.xlarge"))
        )

    assert raised[0].fields == {
        OTHER: "A g6.xlarge node has 5.8 Gi memory, and a replica requests 8 Gi memory. "
        "Request less memory, or remove g6.xlarge from the other instance types."
    }


def test_a_gpu_without_the_memory_is_refused_with_the_reason(world: World) -> None:
    nodes_of(world, "g4dn.xlarge", product="Tesla-T4", memory_mib=15360, price="0.526")
    read(weights=17000, activations=2000, runtime=450)
    draft = world.draft(placement=Placement(other_instance_types="g4dn.xlarge"))

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=draft)

    assert raised[0].fields[OTHER].startswith("g4dn.xlarge: ")
    assert "15,360 MiB on each GPU. Remove g4dn.xlarge" in raised[0].fields[OTHER]
    first = replace(draft, spec=draft.spec.replace(placement=Placement()))
    assert preflight.check(actor=world.member, draft=first).can_submit


def test_the_ranking_names_the_others_that_fit(l4: World) -> None:
    read(weights=700, activations=2000, runtime=450)

    advice = gpu_advice.advise(
        actor=l4.member, version_id=l4.version1.pk, cluster_id=l4.cluster_id, load=Load()
    )

    assert [(choice.offer.instance_type, choice.also_on) for choice in advice.ranked] == [
        ("g6.xlarge", ("g5.xlarge",)),
        ("g5.xlarge", ("g6.xlarge",)),
    ]
