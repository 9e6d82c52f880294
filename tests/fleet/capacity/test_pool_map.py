"""The map of a pool's nodes, for those who hear it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.capacity.web.board import Pool


@pytest.mark.parametrize(
    ("levels", "label"),
    [
        ((0,), "1 node: 1 free, 0 partly held, 0 held"),
        ((0, 4), "2 nodes: 1 free, 0 partly held, 1 held"),
    ],
)
def test_the_label_counts_nodes(levels: tuple[int, ...], label: str) -> None:
    pool = Pool(
        cluster_name="local",
        instance_type="g5.xlarge",
        capacity_type="spot",
        gpu_product="a10g",
        is_simulated=False,
        node_count=len(levels),
        gpu_count=len(levels),
        free_gpus=Decimal(1),
        usd_per_hour_amount=None,
        rows=(),
        map_levels=levels,
    )

    assert pool.map_label == label
