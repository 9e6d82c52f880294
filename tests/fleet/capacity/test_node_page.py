"""A node's page: what it is, its health and what ran on it, in a bounded page."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from fleet.models import (
    Cluster,
    InstancePrice,
    LedgerKind,
    LedgerRow,
    Node,
    SealedHour,
    WorkloadHour,
)
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from portal.accounts.models import Team
from tests.fleet import objects
from tests.fleet.one_node import NOW, admin, member, nlp, node, occupy, still_clock, vision
from tests.page import page

__all__ = ["admin", "member", "nlp", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]
_CONDITIONS = [
    {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastTransitionTime": "2026-11-20T10:00:00Z",
        "lastHeartbeatTime": "2026-11-20T10:00:00Z",
    },
    {"type": "DiskPressure", "status": "True", "message": "imagefs is full"},
]


def observe_node(cluster: Cluster, *, version: int, heartbeat: str) -> Node:
    item = objects.node("gpu-1", gpus=8, version=version)
    item["status"]["conditions"] = [
        _CONDITIONS[0] | {"lastHeartbeatTime": heartbeat},
        _CONDITIONS[1],
    ]
    item["status"]["allocatable"] = {
        "nvidia.com/gpu": "7",
        "nvidia.com/mig-1g.10gb": "4",
        "nvidia.com/mig-3g.40gb": "1",
    }
    item["spec"]["taints"] = [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "maintenance", "effect": "NoExecute"},
    ]
    record.record(cluster_id=cluster.pk, changes=ObservedChanges(nodes=[item]), at=NOW)
    return Node.objects.get(cluster=cluster, name="gpu-1")


def test_the_page_says_what_the_node_is(admin: Client, node: Node) -> None:
    seen = observe_node(node.cluster, version=3, heartbeat="2026-11-20T10:00:00Z")

    shown = page(admin.get(f"/fleet/nodes/{seen.pk}"))

    assert (
        shown.term("Sharing")
        == "MIG: 4 \N{MULTIPLICATION SIGN} 1g.10gb, 1 \N{MULTIPLICATION SIGN} 3g.40gb"
    )
    assert shown.term("GPUs").startswith("8 \N{MULTIPLICATION SIGN} NVIDIA-A10G")
    assert "nvidia.com/gpu=present:NoSchedule" in shown.term("Taints")
    assert "maintenance:NoExecute" in shown.term("Taints")
    assert "imagefs is full" in shown.text
    # No price of g5.xlarge is loaded here.
    assert shown.term("Price").startswith("not known")


def test_a_heartbeat_alone_does_not_change_the_row(
    node: Node, django_assert_max_num_queries: Any
) -> None:
    first = observe_node(node.cluster, version=3, heartbeat="2026-11-20T10:00:00Z")

    second = observe_node(node.cluster, version=4, heartbeat="2026-11-20T10:05:00Z")

    assert second.resource_version == first.resource_version == 3


def test_hours_without_a_price_are_not_known_instead_of_free(
    admin: Client, node: Node, vision: Team
) -> None:
    occupy(node, vision, "detector", 1_000_000, None)
    InstancePrice.objects.all().delete()

    shown = page(admin.get(f"/fleet/nodes/{node.pk}"))

    assert shown.term("Cost, 3 days").startswith("not known")
    assert shown.term("Idle").startswith("not known")
    assert "$" not in shown.text


def test_price_has_its_source_and_links_lead_there(admin: Client, node: Node, vision: Team) -> None:
    occupy(node, vision, "detector", 1_000_000, 0.7)

    fleet = page(admin.get("/fleet"))
    shown = page(admin.get(fleet.link("local-1")))

    assert shown.term("Price").startswith("$5.67")
    assert "Since 21 Nov 2026" in shown.term("Price")
    assert "list" in shown.titles
    assert shown.link("detector") == "/vision/deployments/detector"


def test_a_node_that_vanished_keeps_its_page(admin: Client, node: Node, vision: Team) -> None:
    occupy(node, vision, "detector", 1_000_000, None)
    Node.objects.filter(pk=node.pk).update(gone_at=NOW - timedelta(minutes=2))

    gone = page(admin.get("/fleet/nodes/gone"))
    shown = page(admin.get(gone.link("local-1")))

    assert "Removed 2 min ago" in shown.text
    assert "detector" in shown.text
    assert admin.get("/fleet/nodes/999999").status_code == 404


def test_members_see_no_names_of_other_teams(member: Client, node: Node, nlp: Team) -> None:
    occupy(node, nlp, "secret-plan", 1_000_000, 0.5)

    html = member.get(f"/fleet/nodes/{node.pk}").content.decode()
    answers = [
        member.get(f"/api/v1/nodes/{node.pk}{part}").content.decode()
        for part in ("", "/hours", "/utilisation")
    ]

    assert "secret-plan" not in html + "".join(answers)
    assert "other teams" in html


@pytest.fixture
def ninety_days(node: Node, vision: Team, nlp: Team) -> Node:
    """Six holders and idle in each hour."""
    holders = [
        occupy(node, team, f"{team.slug}-{number}", 500_000, None)
        for team in (vision, nlp)
        for number in range(3)
    ]
    last = NOW.replace(minute=0)
    hours = [last - timedelta(hours=number) for number in range(1, 90 * 24 + 1)]
    Node.objects.filter(pk=node.pk).update(first_seen_at=hours[-1])
    Cluster.objects.filter(pk=node.cluster_id).update(created_at=hours[-1])
    shared: dict[str, Any] = {
        "cluster_name": node.cluster.name,
        "node_uid": node.uid,
        "node_name": node.name,
        "instance_type": node.instance_type,
        "usd_per_hour_amount": Decimal("5.672"),
        "price_source": "list, 2026-11-21",
        "sealed_at": NOW,
    }
    rows = [
        LedgerRow(
            hour=hour,
            kind=LedgerKind.ALLOCATED,
            team_slug=workload.team.slug,
            namespace=workload.namespace,
            workload_name=workload.name,
            workload_labels=workload.labels,
            gpu_milliseconds=1_800_000,
            cost_amount=Decimal("0.709"),
            **shared,
        )
        for hour in hours
        for workload in holders
    ]
    rows += [
        LedgerRow(
            hour=hour,
            kind=LedgerKind.IDLE,
            gpu_milliseconds=3_600_000,
            cost_amount=Decimal("1.418"),
            **shared,
        )
        for hour in hours
    ]
    LedgerRow.objects.bulk_create(rows, batch_size=2000)
    SealedHour.objects.bulk_create(
        [SealedHour(cluster=node.cluster, hour=hour, sealed_at=NOW) for hour in hours]
    )
    WorkloadHour.objects.bulk_create(
        [
            WorkloadHour(
                workload=workload,
                start=hour,
                observed_ms=3_600_000,
                gpu_busy_ms=900_000,
                gpu_busy_source="triton",
            )
            for workload in holders
            for hour in hours
        ]
    )
    return node


def test_a_node_of_ninety_days_is_one_small_page(
    admin: Client, ninety_days: Node, django_assert_num_queries: Any
) -> None:
    # In one test: the ninety days take longer to write than all of these pages.
    for days in (1, 3, 7, 30, 90):
        address = f"/fleet/nodes/{ninety_days.pk}?days={days}"
        admin.get(address)

        with django_assert_num_queries(QUERIES, info=address):
            answer = admin.get(address)

        assert len(answer.content) < 150_000
        cost = page(answer).term(f"Cost, {days} day{'s' if days > 1 else ''}")
        assert cost.startswith("$")
        assert "25%" in page(answer).term("Utilisation")


def test_hours_of_the_api_are_as_bounded(
    admin: Client, ninety_days: Node, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(API_QUERIES):
        answer = admin.get(f"/api/v1/nodes/{ninety_days.pk}/hours")

    hours = answer.json()["hours"]
    assert len(answer.content) < 150_000
    assert len(hours) == 70 // 7 + 1
    assert {hour["cost_usd"] for hour in hours[1:]} == {"5.672000"}
    assert answer.json()["older_than"] == hours[-1]["hour"]


QUERIES = 35
API_QUERIES = 11
