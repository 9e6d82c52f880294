"""Office hours of Karpenter NodePools, and of pools that are deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.actions.domain.evidence import Evidence
from fleet.actions.services import hours_requests
from fleet.models import FleetAction, Node, PoolOfficeHours
from fleet.office_hours.domain.sizes import PoolKind
from portal.accounts.models import User
from tests.fleet.actions.node_pools import live_pool
from tests.fleet.actions.office_hours import (
    Clockwork,
    hands,
    set_hours,
)
from tests.fleet.fakes import FakeKube

__all__ = ["hands"]
pytestmark = pytest.mark.django_db


def test_office_hours_of_a_pool_that_was_deleted_can_be_ended(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Clockwork
) -> None:
    kube.put(live_pool())
    set_hours(lead, admin, node.cluster, hands, kind=PoolKind.NODE_POOL)
    hands.keep()
    kube.remove("NodePool", "", "gpu")
    hands.at += timedelta(minutes=6)
    hands.keep(times=1)
    problem = PoolOfficeHours.objects.get().problem
    action = hours_requests.request_office_hours_end(
        actor=lead, cluster_id=node.cluster_id, kind=PoolKind.NODE_POOL, name="gpu"
    )
    hands.approve(action, admin)
    hands.sweep(2)
    hands.keep(times=2)
    hands.sweep(2)
    action.refresh_from_db()

    assert problem == "Node pool gpu does not exist."
    assert Evidence.from_json(action.evidence).warnings == (
        "Node pool gpu does not exist. Only its office hours are removed.",
    )
    assert (action.state, PoolOfficeHours.objects.count()) == ("done", 0)


def test_a_node_pool_gets_its_limit_and_says_what_ends_its_nodes(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Clockwork
) -> None:
    kube.put(live_pool())
    Node.objects.filter(pk=node.pk).update(labels={"karpenter.sh/nodepool": "gpu"})
    set_hours(lead, admin, node.cluster, hands, kind=PoolKind.NODE_POOL)
    hands.keep()
    hands.at_time("2026-11-20T21:00:00+00:00")
    hands.keep()
    night = dict(kube.objects["NodePool", "", "gpu"]["spec"])
    hands.at_time("2026-11-23T06:30:00+00:00")
    hands.keep()
    monday = kube.objects["NodePool", "", "gpu"]["spec"]

    evidence = Evidence.from_json(FleetAction.objects.get().evidence)
    assert night["limits"] == {"nvidia.com/gpu": "0", "cpu": "64"}
    assert monday["limits"] == {"nvidia.com/gpu": "4", "cpu": "64"}
    assert [(row.deployment, row.pods, row.gpus) for row in evidence.deployments] == [
        ("detector", 2, 2)
    ]
    assert evidence.warnings == (
        "argocd-controller also writes this node pool, and may restore its own values.",
        "A lower GPU limit starts no new node and ends no running one. Karpenter ends a node 5m after it has "
        "no pod but those of DaemonSets, or when its pods fit on other nodes. So deployments that keep "
        "replicas at night keep their nodes: give them office hours or scale to zero too.",
    )
    # It chooses types by other means than a list.
    assert evidence.usd_per_hour_after is None


def test_a_static_node_pool_ends_nodes(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Clockwork
) -> None:
    kube.put(live_pool(replicas=3, limits={"nodes": "5"}))
    set_hours(lead, admin, node.cluster, hands, kind=PoolKind.NODE_POOL)
    hands.keep()
    hands.at_time("2026-11-20T21:00:00+00:00")
    hands.keep()
    night = dict(kube.objects["NodePool", "", "gpu"]["spec"])
    hands.at_time("2026-11-23T06:30:00+00:00")
    hands.keep()

    assert (night["replicas"], night["limits"]) == (0, {"nodes": "5"})
    assert kube.objects["NodePool", "", "gpu"]["spec"]["replicas"] == 3
