"""The Fleet page: which team uses which GPU."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from fleet.models import Node, Pod
from portal.accounts.models import Team
from tests.fleet.one_node import NOW, admin, member, nlp, node, occupy, still_clock, vision
from tests.page import page

__all__ = ["admin", "member", "nlp", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]


def test_each_gpu_is_a_tile_that_names_its_holder(admin: Client, node: Node, vision: Team) -> None:
    occupy(node, vision, "detector", 1_000_000, 0.7)
    occupy(node, vision, "rank", 250_000, None)

    fleet = page(admin.get("/fleet"))

    assert fleet.link("detector") == "/vision/deployments/detector"
    assert any(t.startswith("vision/detector · detector-pod · 1 GPU · 70% ") for t in fleet.titles)
    assert any("rank-pod" in t and t.endswith("utilisation not known") for t in fleet.titles)
    assert fleet.term("GPUs allocated").startswith("1.25 of 4")
    assert fleet.term("GPUs allocated").endswith("2.75 free")


def test_things_of_other_teams_are_not_named(member: Client, node: Node, nlp: Team) -> None:
    occupy(node, nlp, "secret-plan", 1_000_000, 0.5)

    html = member.get("/fleet").content.decode()

    assert "secret-plan" not in html
    assert "other team" in html


def test_pending_pods_say_why_they_wait(admin: Client, node: Node, vision: Team) -> None:
    workload = occupy(node, vision, "detector", 1_000_000, None)
    Pod.objects.create(
        cluster=node.cluster,
        workload=workload,
        namespace="vision",
        name="detector-r1-x",
        uid="p",
        phase="Pending",
        reason="Unschedulable",
        message="0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        gpu_resource="nvidia.com/gpu",
        gpu_units=2,
        created_at=NOW - timedelta(minutes=4),
    )

    html = admin.get("/fleet").content.decode()

    assert "0/1 nodes are available: 1 Insufficient nvidia.com/gpu." in html
    assert "4 min ago" in html


def test_fleet_without_nodes_teaches_the_next_step(admin: Client) -> None:
    assert "No GPU nodes yet" in admin.get("/fleet").content.decode()


def test_polling_gets_the_board_only(admin: Client, node: Node) -> None:
    board = page(admin.get("/fleet", headers={"HX-Request": "true"}))

    assert not board.is_whole_page
    assert board.part("fleet-board").term("Pending pods").startswith("0")


def test_fleet_needs_as_many_queries_for_many_nodes_as_for_one(
    admin: Client, node: Node, vision: Team, django_assert_max_num_queries: Any
) -> None:
    occupy(node, vision, "detector", 1_000_000, 0.4)
    for number in range(30):
        node.pk, node.uid, node.name = None, f"n{number}x", f"local-{number + 2}"
        node.save()

    with django_assert_max_num_queries(21):
        fleet = page(admin.get("/fleet"))

    assert sum(f"local-{number}" in fleet.text.split() for number in range(1, 32)) == 24
    assert "View all 31 nodes" in fleet.links
    assert "31 nodes: 30 free, 1 partly held, 0 held" in fleet.text


def test_a_pool_with_many_nodes_has_pages(admin: Client, node: Node) -> None:
    for number in range(70):
        node.pk, node.uid, node.name = None, f"n{number}x", f"local-{number + 2}"
        node.save()
    address = page(admin.get("/fleet")).links["View all 71 nodes"]

    shown = [page(admin.get(f"{address}&page={number}")) for number in ("1", "2", "x")]

    counts = [sum(f"local-{n}" in one.text.split() for n in range(1, 72)) for one in shown]
    assert counts == [60, 11, 60]
    assert ("Next" in shown[0].links, "Next" in shown[1].links) == (True, False)


def test_who_sees_the_same_is_sent_the_same_board(
    admin: Client, member: Client, node: Node, nlp: Team
) -> None:
    occupy(node, nlp, "secret-plan", 1_000_000, 0.5)
    polled: dict[str, Any] = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "fleet-board"}
    first = admin.get("/fleet", **polled).content.decode()
    occupy(node, nlp, "late", 1_000_000, 0.5)

    assert "secret-plan" in first
    assert admin.get("/fleet", **polled).content.decode() == first
    assert "late" in admin.get("/fleet").content.decode()
    assert "late" in admin.get("/fleet?show=idle", **polled).content.decode()
    of_member = member.get("/fleet", **polled).content.decode()
    assert "secret-plan" not in of_member
    assert "other team" in of_member
