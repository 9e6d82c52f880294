"""A price for each kind of node that a cluster has."""

from __future__ import annotations

from decimal import Decimal

from fleet.models import InstancePrice, Node
from portal.core import clock


def price_all_nodes() -> None:
    """$1.006 an hour."""
    for name, region in set(Node.objects.values_list("instance_type", "region")):
        InstancePrice.objects.create(
            instance_type=name,
            region=region,
            usd_per_hour_amount=Decimal("1.006"),
            gpu_count=1,
            gpu_memory_mib=24576,
            vcpu=4,
            memory_gib=16,
            source="catalogue",
            valid_from=clock.now().date(),
        )
