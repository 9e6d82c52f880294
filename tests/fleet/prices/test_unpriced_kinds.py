"""Nodes whose price is not known, found by kind and not one by one."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.gpus.selectors import prices
from fleet.models import Cluster, InstancePrice, Node
from tests.fleet.one_node import NOW, node

__all__ = ["node"]
pytestmark = pytest.mark.django_db


def copy(node: Node, name: str, **changed: Any) -> None:
    values: dict[str, Any] = {
        "instance_type": node.instance_type,
        "capacity_type": node.capacity_type,
        "region": node.region,
        "cluster": node.cluster,
        "gpu_count": 4,
        **changed,
    }
    Node.objects.create(uid=name, name=name, first_seen_at=NOW, last_seen_at=NOW, **values)


def test_only_kinds_without_any_price_are_listed(node: Node) -> None:
    elsewhere = Cluster.objects.create(
        name="eu",
        kind="local",
        gateway_url="http://127.0.0.1:1",
        region="eu-west-1",
        created_at=NOW,
    )
    copy(node, "b-spot", capacity_type="spot")
    copy(node, "a-spot", capacity_type="spot")
    copy(node, "other-type", instance_type="g6.xlarge")
    copy(node, "of-cluster", cluster=elsewhere, region="")
    copy(node, "own-region", cluster=elsewhere, region="us-east-1")
    copy(node, "gone", instance_type="g6.xlarge", gone_at=NOW)
    copy(node, "without-gpus", instance_type="t3.large", gpu_count=0)

    names = [one.name for one in prices.nodes_without_price()]

    assert names == ["of-cluster", "a-spot", "b-spot", "other-type"]
    price = InstancePrice.objects.get()
    for region, capacity_type in (("eu-west-1", "on-demand"), ("us-east-1", "spot")):
        price.pk, price.region, price.capacity_type = None, region, capacity_type
        price.save(force_insert=True)
    assert [one.name for one in prices.nodes_without_price()] == ["other-type"]


def test_many_nodes_need_no_more_queries(node: Node, django_assert_num_queries: Any) -> None:
    for number in range(20):
        copy(node, f"spot-{number}", capacity_type="spot")

    with django_assert_num_queries(4):
        assert len(prices.nodes_without_price()) == 20
