"""Settings of a Karpenter NodePool: read, changed and bounded."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from fleet.actions.domain import pool_settings
from fleet.actions.domain.pool_settings import PoolSettings
from tests.contract import schemas
from tests.fleet.actions.node_pools import ARCH, WANTED, live_pool


def test_a_change_replaces_what_it_names_and_keeps_the_rest() -> None:
    before = live_pool()

    after = pool_settings.apply_patch(before, pool_settings.patch(before, WANTED))

    spec = after["spec"]
    assert spec["template"]["spec"]["requirements"] == [
        ARCH,
        {
            "key": "node.kubernetes.io/instance-type",
            "operator": "In",
            "values": ["g5.xlarge", "g6.xlarge"],
        },
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand", "spot"]},
    ]
    assert spec["template"]["metadata"] == {"labels": {"team": "platform"}}
    assert spec["template"]["spec"]["expireAfter"] == "24h"
    assert spec["limits"] == {"nvidia.com/gpu": "8", "cpu": "64"}
    assert spec["disruption"] == {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": "10m",
        "budgets": [{"nodes": "10%"}],
    }
    assert spec["weight"] == 10
    assert before == live_pool()


def test_without_types_a_pool_keeps_how_it_chooses_them_and_a_limit_can_be_removed() -> None:
    before = live_pool()
    settings = replace(pool_settings.read(before), gpu_limit=None)

    after = pool_settings.apply_patch(before, pool_settings.patch(before, settings))

    keys = [item["key"] for item in after["spec"]["template"]["spec"]["requirements"]]
    assert keys == [
        "karpenter.k8s.aws/instance-gpu-name",
        "kubernetes.io/arch",
        "karpenter.sh/capacity-type",
    ]
    assert after["spec"]["limits"] == {"cpu": "64"}


def test_what_was_read_is_what_was_written() -> None:
    made = pool_settings.manifest("gpu", WANTED)

    assert pool_settings.read(made) == replace(
        WANTED, instance_types=tuple(sorted(WANTED.instance_types))
    )
    assert pool_settings.apply_patch(made, pool_settings.patch(made, WANTED)) == made
    assert PoolSettings.from_json(WANTED.to_json()) == WANTED


CAPACITIES = [
    names
    for count in range(1, len(pool_settings.CAPACITY_TYPES) + 1)
    for names in combinations(pool_settings.CAPACITY_TYPES, count)
]
EVERY = [
    *(WANTED, replace(WANTED, gpu_limit=0, taints=())),
    *(replace(WANTED, capacity_types=names) for names in CAPACITIES),
    *(replace(WANTED, consolidation=policy) for policy in pool_settings.POLICIES),
    *(replace(WANTED, consolidate_after=after) for after in ("Never", "30s", "1h30m", "1h30m5s")),
    replace(WANTED, node_class_kind="NodeClass"),
]


@pytest.mark.parametrize("settings", EVERY)
def test_pools_are_as_karpenter_publishes_them(settings: PoolSettings) -> None:
    published = schemas.require_custom()
    before = live_pool()
    del before["metadata"]["managedFields"]
    changed = pool_settings.apply_patch(before, pool_settings.patch(before, settings))

    for item in (pool_settings.manifest("gpu", settings), changed):
        published[item["apiVersion"], item["kind"]].validate(item)


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("instance_types", {"instance_types": ()}),
        ("instance_types", {"instance_types": ("g5",)}),
        ("instance_types", {"instance_types": ("g5.xlarge\n",)}),
        ("instance_types", {"instance_types": tuple(f"g5.x{n}large" for n in range(41))}),
        ("capacity_types", {"capacity_types": ()}),
        ("capacity_types", {"capacity_types": ("capacity-block",)}),
        ("gpu_limit", {"gpu_limit": -1}),
        ("gpu_limit", {"gpu_limit": 10_001}),
        ("taints", {"taints": ("nvidia.com/gpu",)}),
        ("taints", {"taints": ("a=b:Never",)}),
        ("consolidation", {"consolidation": "Never"}),
        ("consolidate_after", {"consolidate_after": "5"}),
        ("consolidate_after", {"consolidate_after": "5m; rm"}),
        ("node_class", {"node_class": ""}),
        ("node_class", {"node_class": "../x"}),
    ],
)
def test_bounds(field: str, changed: dict[str, Any]) -> None:
    assert list(replace(WANTED, **changed).problems(is_new=True)) == [field]


def test_valid_settings_have_no_problems() -> None:
    assert WANTED.problems(is_new=True) == {}
    assert replace(WANTED, node_class="", instance_types=()).problems(is_new=False) == {}


@pytest.mark.parametrize("settings", EVERY)
def test_every_pool_that_can_be_written_can_be_read_and_changed(settings: PoolSettings) -> None:
    made = pool_settings.manifest("gpu", settings)

    live = pool_settings.read(made)

    assert live.problems(is_new=False) == {}
    assert pool_settings.apply_patch(made, pool_settings.patch(made, live)) == made


def test_a_pool_of_reservations_as_people_write_it() -> None:
    """Nothing but what it starts."""
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {"spec": {"nodeClassRef": reference, "requirements": requirements}}

    settings = pool_settings.read({"spec": {"template": template}})

    assert settings.capacity_types == ("reserved",)
    assert settings.problems(is_new=False) == {}


@pytest.mark.parametrize(
    ("kind", "group", "expire_after"),
    [("EC2NodeClass", "karpenter.k8s.aws", "720h"), ("NodeClass", "eks.amazonaws.com", "336h")],
)
def test_a_new_pool_names_the_kind_of_node_class_of_its_cluster(
    kind: str, group: str, expire_after: str
) -> None:
    """Auto Mode keeps no node longer than 21 days."""
    made = pool_settings.manifest("gpu", replace(WANTED, node_class_kind=kind))

    template = made["spec"]["template"]["spec"]
    reference = {"group": group, "kind": kind, "name": WANTED.node_class}
    assert (template["nodeClassRef"], template["expireAfter"]) == (reference, expire_after)


def test_settings_that_were_stored_before_there_were_kinds_are_read() -> None:
    stored = {name: v for name, v in WANTED.to_json().items() if name != "node_class_kind"}

    assert PoolSettings.from_json(stored) == WANTED
