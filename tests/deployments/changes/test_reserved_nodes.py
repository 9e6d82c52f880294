"""A team reads how many GPUs are free for it: those of nodes that are reserved by a taint are named apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from deployments.preflight.services import preflight
from deployments.spec.domain.serving_spec import Placement
from fleet.models import Node
from portal.accounts.models import User
from tests.deployments.world import World
from tests.page import page

pytestmark = pytest.mark.django_db
RESERVED = "reserved=batch:NoSchedule"


def reserve(*names: str) -> None:
    taints = [
        {"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"},
        {"key": "reserved", "value": "batch", "effect": "NoSchedule"},
    ]
    assert Node.objects.filter(name__in=names).update(taints=taints) == len(names)


def capacity_of(world: World, replicas: int, tolerations: str = "") -> tuple[bool | None, str]:
    draft = world.draft(
        min_replicas=replicas, max_replicas=replicas, placement=Placement(tolerations=tolerations)
    )
    checks = preflight.check(actor=world.member, draft=draft).checks
    return next((check.ok, check.detail) for check in checks if check.name == "Capacity now")


def fits_now(world: World, client: Client) -> tuple[str, str]:
    """The pill, and what stands under the share."""
    shown = page(client.get(f"/vision/deployments/new?version={world.version1.pk}"))
    row = next(row for row in shown.rows if "g5.xlarge" in row.get("GPU share", ""))
    return row["Fits now"], row["GPU share"].partition("g5.xlarge")[2].strip()


def test_the_form_offers_what_an_ordinary_request_gets(
    world: World, signed_in: Callable[[User], Client]
) -> None:
    client = signed_in(world.member)
    names = list(Node.objects.values_list("name", flat=True))
    before = fits_now(world, client)

    reserve(*names[:3])
    some = fits_now(world, client)
    reserve(*names)

    more = f"3 more free on nodes that take only pods which tolerate {RESERVED}"
    assert (before, some) == (("4 free", ""), ("1 free", more))
    none, others = fits_now(world, client)
    assert none == "None free"
    assert f"4 free on nodes that take only pods which tolerate {RESERVED}" in others


def test_the_check_and_the_form_count_alike(world: World) -> None:
    names = list(Node.objects.values_list("name", flat=True))
    reserve(*names[:3])

    assert capacity_of(world, 1) == (True, "1 of this size fits now.")
    ok, detail = capacity_of(world, 2)
    assert not ok
    assert detail.startswith("1 of 2 fit now: not enough GPU")
    assert f"on 1 node); 3 of 4 nodes take only pods that tolerate {RESERVED}." in detail
    assert capacity_of(world, 4, tolerations=RESERVED) == (True, "4 of this size fit now.")
    assert capacity_of(world, 4, tolerations="reserved:NoSchedule")[0] is True
    assert not capacity_of(world, 2, tolerations="reserved=batch:NoExecute")[0]
