"""Hardware of one's own without an instance type is named after its GPU: no pod can require it, so nothing offers it."""

from __future__ import annotations

import pytest
from django.test import Client

from deployments.preflight.services import capacity_checks
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.capacity.selectors import capacity
from fleet.clusters.selectors import instance_types
from fleet.models import InstancePrice, Node
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
PRODUCT = "NVIDIA-RTX-A6000"
LABEL = "node.kubernetes.io/instance-type"


def _rename(labels: dict[str, str], *, instance_type: str = PRODUCT, number: int = 0) -> None:
    node = Node.objects.order_by("name")[number]
    Node.objects.filter(pk=node.pk).update(
        instance_type=instance_type,
        gpu_product=PRODUCT,
        labels={"nvidia.com/gpu.product": PRODUCT, "nvidia.com/gpu.count": "1", **labels},
    )


def _offered(world: World) -> set[str]:
    return {share.instance_type for share in capacity.list_shares(cluster_id=world.cluster_id)}


def _refusal(world: World, name: str) -> str:
    spec = ServingSpec.from_json({"engine": "triton", "instance_type": name})
    checks = capacity_checks.check_instance_type(spec, cluster_id=world.cluster_id, pools=())
    return " ".join(f"{check.detail} {check.fix}" for check in checks)


def test_a_gpu_that_no_pod_can_require_is_not_offered_and_its_node_is_named(world: World) -> None:
    _rename({})
    price = InstancePrice.objects.get(instance_type="g5.xlarge")
    price.pk, price.instance_type, price.capacity_type = None, PRODUCT, "own"
    price.save()

    assert _offered(world) == {"g5.xlarge"}
    singles = capacity.list_single_gpus(cluster_id=world.cluster_id)
    assert {single.instance_type for single in singles} == {"g5.xlarge"}
    assert instance_types.list_unlabelled(cluster_id=world.cluster_id) == {PRODUCT: ["node-0"]}
    assert _refusal(world, PRODUCT) == (
        f"No pod can require {PRODUCT}: node-0 has no label {LABEL}. "
        "Ask a platform admin to label the node, for example with lab-a6000."
    )


@pytest.mark.parametrize("name", ["lab-a6000", PRODUCT, "Standard_NC24ads_A100_v4"])
def test_a_labelled_node_is_offered_and_accepted(world: World, name: str) -> None:
    _rename({LABEL: name}, instance_type=name)

    assert name in _offered(world)
    assert _refusal(world, name) == ""
    assert instance_types.list_unlabelled(cluster_id=world.cluster_id) == {}


def test_the_form_says_why_it_does_not_offer_it(world: World) -> None:
    _rename({})
    _rename({}, number=1)
    client = Client()
    client.force_login(world.member)

    shown = page(client.get(f"/vision/deployments/new?version={world.version1.pk}")).text

    assert (
        f"{PRODUCT} of node-0 and 1 more cannot be requested: no label {LABEL}. A platform admin can set one."
        in shown
    )


def test_where_it_is_all_there_is_the_reason_stands_alone(world: World) -> None:
    Node.objects.exclude(name="node-0").delete()
    _rename({})
    client = Client()
    client.force_login(world.member)

    shown = page(client.get(f"/vision/deployments/new?version={world.version1.pk}")).text

    assert "No GPU available." in shown
    assert f"{PRODUCT} of node-0 cannot be requested" in shown
