"""Who waits for which GPU, why, and what would free it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from fleet.capacity.domain import waiting
from fleet.capacity.domain.waiting import (
    IdleHolder,
    NodeUnits,
    QueuePlace,
    Relief,
    Waiter,
    WaiterKind,
)
from fleet.capacity.services import wait_sources
from fleet.capacity.services.wait_sources import IdleDeployment
from fleet.models import Node, Pod, Workload
from portal.accounts.models import Team
from tests.fleet.one_node import NOW, admin, member, nlp, node, occupy, still_clock, vision
from tests.page import page

__all__ = ["admin", "member", "nlp", "node", "still_clock", "vision"]
GPU = "nvidia.com/gpu"
FULL = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
ONE = Waiter(
    kind=WaiterKind.DEPLOYMENT,
    cluster_id=1,
    cluster_name="local",
    team_slug="vision",
    name="detector",
    is_visible=True,
    resource=GPU,
    units=2,
    since=NOW,
    instance_types=("g5.xlarge",),
    namespace="vision",
    workload_name="detector-r1",
    reason="Unschedulable",
    message=FULL,
)
RANKER = IdleHolder(
    cluster_id=1,
    team_slug="nlp",
    deployment="ranker",
    is_visible=True,
    resource=GPU,
    instance_type="g5.xlarge",
    units=2,
    idle_days=9,
)


def nodes(*free: int, whole: int = 4) -> list[NodeUnits]:
    return [NodeUnits(1, "g5.xlarge", GPU, whole, one) for one in free]


def explain(waiter: Waiter, units: list[NodeUnits], *idle: IdleHolder) -> tuple[str, Relief]:
    (row,) = waiting.explain([waiter], units, idle)
    return row.why, row.relief


def test_an_idle_deployment_on_the_same_nodes_is_named_before_a_node() -> None:
    other = replace(RANKER, instance_type="g6.xlarge")

    assert explain(ONE, nodes(0), other, RANKER) == (
        "None of 4 GPUs of g5.xlarge is free",
        Relief("2 GPUs of g5.xlarge", (RANKER,), ("add a node",)),
    )


def test_only_as_many_idle_deployments_as_are_needed_are_named() -> None:
    long = replace(RANKER, deployment="old", idle_days=30, units=1)
    small = replace(RANKER, deployment="small", units=1)

    _, relief = explain(ONE, nodes(0), RANKER, small, long)

    assert [holder.deployment for holder in relief.holders] == ["old", "ranker"]


def test_what_several_pods_miss_is_counted_by_pods_that_fit() -> None:
    three = replace(ONE, pods=6)

    assert explain(three, nodes(2, 1)) == (
        "3 of 8 GPUs of g5.xlarge are free",
        Relief("10 GPUs of g5.xlarge", (), ("add 3 nodes",)),
    )


def test_free_gpus_on_two_nodes_are_not_two_on_one() -> None:
    assert explain(ONE, nodes(1, 1)) == (
        "2 GPUs free, but not 2 on one node",
        Relief("2 GPUs on one node", (), ("add a node",)),
    )


def test_no_node_is_large_enough() -> None:
    assert explain(ONE, nodes(0, whole=1)) == (
        "No node has 2 GPUs; the largest has 1",
        Relief(
            "2 GPUs on one node",
            (),
            ("request fewer for each replica", "add a node with at least 2 GPUs"),
        ),
    )


@pytest.mark.parametrize(
    ("types", "why", "needed"),
    [
        (("p4d.24xlarge",), "No node of p4d.24xlarge", "2 GPUs of p4d.24xlarge"),
        ((), "No node offers nvidia.com/mig-1g.10gb", "2 nvidia.com/mig-1g.10gb"),
    ],
)
def test_no_node_of_the_type(types: tuple[str, ...], why: str, needed: str) -> None:
    resource = GPU if types else "nvidia.com/mig-1g.10gb"
    waiter = replace(ONE, instance_types=types, resource=resource)

    assert explain(waiter, nodes(4)) == (why, Relief(needed, (), ("add a node",)))


def test_what_fits_by_now_only_needs_time() -> None:
    assert explain(ONE, nodes(2)) == (
        "2 GPUs are free by now",
        Relief("", (), ("the scheduler tries again automatically",)),
    )


@pytest.mark.parametrize(
    ("message", "why", "relief"),
    [
        (
            "0/2 nodes are available: 2 Insufficient memory, 1 Insufficient cpu.",
            "Nodes with free GPUs lack CPU and memory",
            Relief(
                "CPU and memory on a node with free GPUs",
                (),
                ("request less CPU and memory", "add a node of g5.xlarge"),
            ),
        ),
        (
            "0/1 nodes are available: 1 node(s) had untolerated taint {team: nlp}.",
            "The nodes that are left are reserved by a taint",
            Relief("2 GPUs of g5.xlarge", (), ("tolerate the taint", "add a node")),
        ),
        (
            "0/1 nodes are available: 1 node(s) had volume node affinity conflict.",
            "Its volume is not available on a node with free GPUs",
            Relief("Its volume", (), ("check the claim of the volume",)),
        ),
        (
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
            "No node has the type, zone and labels requested",
            Relief("2 GPUs of g5.xlarge", (), ("change its placement", "add a node")),
        ),
    ],
)
def test_other_reasons_are_said_in_words(message: str, why: str, relief: Relief) -> None:
    assert explain(replace(ONE, message=message), nodes(4), RANKER) == (why, relief)


def test_a_queue_frees_what_waits_in_it() -> None:
    place = QueuePlace(queue="serving", position=2, why="insufficient quota")

    assert explain(replace(ONE, place=place), nodes(0), RANKER) == (
        "2nd in queue serving: insufficient quota",
        Relief(
            "Quota of queue serving", (), ("wait for the workload before it", "raise its quota")
        ),
    )
    assert explain(replace(ONE, reason="SchedulingGated"), nodes(0), RANKER) == (
        "In a queue",
        Relief("Quota of its queue", (), ("wait until admitted workloads end", "raise its quota")),
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd"), (112, "112th")],
)
def test_places_are_written_as_ordinals(number: int, text: str) -> None:
    assert waiting.format_ordinal(number) == text


def test_pods_of_one_workload_are_one_row_and_the_longest_wait_is_first() -> None:
    late = replace(ONE, since=NOW + timedelta(minutes=1))
    other = replace(ONE, name="ranker", workload_name="ranker-r1", since=NOW + timedelta(seconds=5))
    hidden = replace(ONE, is_visible=False, name="other team", workload_name="", namespace="")

    grouped = waiting.group_waiters([late, other, ONE, hidden, hidden])

    assert [(one.name, one.pods, one.since) for one in grouped] == [
        ("detector", 2, NOW),
        ("other team", 1, NOW),
        ("other team", 1, NOW),
        ("ranker", 1, NOW + timedelta(seconds=5)),
    ]


class Source:
    """A source that knows one idle deployment, one place and one job."""

    def find_places(self, workloads: Any) -> dict[tuple[int, str, str], QueuePlace]:
        return {key: QueuePlace(queue="serving", position=1) for key in workloads}

    def list_queued_jobs(self) -> list[Waiter]:
        return []

    def list_idle(self, clusters: Any) -> list[IdleDeployment]:
        return [IdleDeployment(cluster, "nlp", "ranker", 9) for cluster in clusters]


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_sources, "_sources", [Source()])


def add_pod(workload: Workload, name: str, node: Node | None = None, **columns: Any) -> None:
    held = {"phase": "Running", "node": node, "node_name": node.name} if node else {}
    pending = {"phase": "Pending", "reason": "Unschedulable", "message": FULL}
    Pod.objects.create(
        **{
            "cluster": workload.cluster,
            "workload": workload,
            "namespace": workload.namespace,
            "name": name,
            "uid": name,
            "gpu_resource": GPU,
            "gpu_units": 2,
            "created_at": NOW - timedelta(minutes=4),
            **(held or pending),
            **columns,
        }
    )


@pytest.fixture
def full(node: Node, nlp: Team) -> Node:
    Node.objects.update(allocatable={GPU: "4"})
    ranker = occupy(node, nlp, "ranker", 2_000_000, 0.0)
    add_pod(ranker, "ranker-a", node)
    add_pod(ranker, "ranker-b", node)
    return node


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock", "source")
def test_the_page_names_who_waits_and_what_would_free_it(
    admin: Client, member: Client, full: Node, vision: Team
) -> None:
    detector = occupy(full, vision, "detector", 0, None)
    add_pod(detector, "detector-a", instance_types=["g5.12xlarge"])

    shown = page(admin.get("/fleet")).part("waiting")
    seen = page(member.get("/fleet")).part("waiting")

    (row,) = shown.rows
    assert row == {
        "Who": "detector Deployment",
        "Team": "vision",
        "Requests": "2 GPUs of g5.12xlarge local",
        "Waiting since": "4 min ago",
        "Why": "None of 4 GPUs of g5.12xlarge is free",
        "What would free it": "2 GPUs of g5.12xlarge: scale down ranker (idle 9 d), or add a node",
    }
    assert shown.link("ranker") == "/nlp/deployments/ranker"
    assert shown.link("detector") == "/vision/deployments/detector"
    assert seen.rows[0]["What would free it"] == (
        "2 GPUs of g5.12xlarge: scale down a deployment of another team (idle 9 d), or add a node"
    )


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock", "source")
def test_a_pod_that_has_a_node_only_starts_and_a_cordoned_node_has_nothing_free(
    admin: Client, full: Node, vision: Team
) -> None:
    Pod.objects.all().delete()
    Node.objects.update(is_schedulable=False)
    detector = occupy(full, vision, "detector", 0, None)
    add_pod(detector, "starting", full, phase="Pending")
    add_pod(detector, "gated", reason="SchedulingGated", message="")
    add_pod(occupy(full, vision, "rank", 0, None), "rank-a")

    shown = page(admin.get("/fleet"))

    assert shown.term("Pending pods").startswith("2 ")
    assert [(row["Who"], row["Why"]) for row in shown.part("waiting").rows] == [
        ("detector Deployment", "1st in queue serving"),
        ("rank Deployment", "None of 4 GPUs is free"),
    ]


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock", "source")
def test_many_waits_take_as_many_queries_as_one(
    admin: Client, full: Node, vision: Team, django_assert_max_num_queries: Any
) -> None:
    add_pod(occupy(full, vision, "first", 0, None), "first-a")
    with django_assert_max_num_queries(25) as one:
        admin.get("/fleet")
    for number in range(29):
        add_pod(occupy(full, vision, f"d{number:02}", 0, None), f"d{number:02}-a")

    with django_assert_max_num_queries(len(one)):
        shown = page(admin.get("/fleet")).part("waiting")

    assert len(shown.rows) == 20
    assert "The 20 that wait longest of 30" in shown.text
