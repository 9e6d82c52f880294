"""Who requests and who approves reads what it costs that Karpenter leaves pods where they are."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import cost, preflight
from deployments.spec.domain.serving_spec import Placement, ServingSpec
from fleet.clusters.selectors import clusters
from fleet.gpus.domain.offers import GpuShare
from fleet.models import InstancePrice
from portal.core import clock
from tests.deployments.world import World

pytestmark = pytest.mark.django_db
_KEPT = Placement(do_not_disrupt=True)


def _check(world: World, share: GpuShare | None, **spec: Any) -> Check:
    values = {"engine": "triton", "instance_type": "p4d.24xlarge", "placement": _KEPT, **spec}
    cluster = clusters.get_cluster(world.cluster_id)
    (check,) = cost.check_consolidation(ServingSpec(**values), cluster, [share])
    return check


def _share(per_hour: str | None, gpus: int = 1) -> GpuShare:
    return GpuShare(
        instance_type="p4d.24xlarge",
        gpu_name="NVIDIA-A100",
        gpu_resource="nvidia.com/gpu",
        gpus=gpus,
        vram_mib=40960,
        usd_per_hour_amount=None if per_hour is None else Decimal(per_hour),
        price_source="catalogue",
        price_date=None,
        free_now=0,
        nodes=1,
        is_simulated=False,
    )


@pytest.fixture
def priced(world: World) -> World:
    InstancePrice.objects.create(
        instance_type="p4d.24xlarge",
        region="us-east-1",
        usd_per_hour_amount=Decimal("32.00"),
        gpu_name="a100",
        gpu_count=8,
        gpu_memory_mib=40960,
        vcpu=96,
        memory_gib=1152,
        allocatable_cpu="95690m",
        allocatable_memory="1100000Mi",
        source="catalogue",
        valid_from=clock.now().date(),
    )
    return world


def test_it_names_the_nodes_and_the_dollars_of_what_nobody_uses(priced: World) -> None:
    check = _check(
        priced, _share("4.00"), min_replicas=2, max_replicas=2, instance_type="p4d.24xlarge"
    )

    assert (check.name, check.ok, check.is_blocking) == ("Consolidation", True, False)
    assert "up to 2 nodes, until the pods end" in check.detail
    # Seven GPUs of eight, on two nodes, for 730 hours.
    assert "up to $40,880 a month for GPUs that nobody uses" in check.detail


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (_share("32.00", gpus=8), "A pod fills its node, so no unused GPU is paid for."),
        (_share(None), "is not known, because its price is missing."),
        (None, "is not known, because its price is missing."),
    ],
)
def test_a_full_node_and_one_without_a_price(
    priced: World, share: GpuShare | None, told: str
) -> None:
    assert told in _check(priced, share, gpus=8).detail


def test_a_revision_that_may_be_moved_has_no_such_check(world: World) -> None:
    names = {
        check.name for check in preflight.check(actor=world.member, draft=world.draft()).checks
    }

    assert "Consolidation" not in names


def test_requester_and_approver_see_the_same(world: World) -> None:
    draft = world.draft(placement=_KEPT)

    asked = preflight.check(actor=world.member, draft=draft)
    change = requests.request_deploy(actor=world.member, draft=draft)

    (shown,) = [check for check in asked.checks if check.name == "Consolidation"]
    assert "A pod fills its node" in shown.detail
    assert shown.to_json() in change.checks
    assert change.revision.spec["placement"]["do_not_disrupt"] is True
