"""A node that is taken away or has a faulty GPU: on the Fleet page, its own page and in the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from fleet.capacity.selectors import notices
from fleet.models import Node
from portal.accounts.models import Team
from tests.fleet.one_node import NOW, admin, member, nlp, node, occupy, still_clock, vision
from tests.page import page

__all__ = ["admin", "member", "nlp", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]
SPOT = {"key": "aws-node-termination-handler/spot-itn", "value": "e", "effect": "NoSchedule"}
XID = {
    "type": "AcceleratedHardwareReady",
    "status": "False",
    "reason": "NvidiaXID79Error",
    "message": "XID 79 on GPU 0000:00:1e.0",
    "since": "2026-11-21T12:00:00+00:00",
}


def test_a_node_with_notices_is_first_on_the_fleet_page_and_explained_on_its_own(
    member: Client, node: Node
) -> None:
    Node.objects.update(taints=[SPOT], conditions=[XID], capacity_type="spot")

    fleet = page(member.get("/fleet"))
    own = page(member.get(f"/fleet/nodes/{node.pk}")).text

    assert "Node notices" in fleet.text
    assert "Spot interruption" in fleet.text
    assert "GPU has fallen off the bus. XID 79 on GPU 0000:00:1e.0." in fleet.text
    assert "Spot interruption. AWS takes the instance back two minutes after its notice." in own
    assert "Reported by AWS node termination handler." in own
    assert "XID 79. GPU has fallen off the bus." in own


def test_the_api_has_the_notices_of_each_node(admin: Client, node: Node) -> None:
    Node.objects.update(taints=[SPOT], conditions=[XID])

    [listed] = admin.get("/api/v1/nodes").json()["results"]
    details = admin.get(f"/api/v1/nodes/{node.pk}").json()

    assert listed["notices"] == details["notices"]
    fault, reclaim = details["notices"]
    assert (fault["kind"], fault["xid"], fault["reported_by"]) == (
        "gpu-fault",
        79,
        "AcceleratedHardwareReady",
    )
    assert (reclaim["kind"], reclaim["xid"], reclaim["title"]) == (
        "reclaim",
        None,
        "Spot interruption",
    )


@pytest.mark.parametrize(
    "quiet",
    [
        {"gone_at": NOW, "taints": [SPOT]},
        {"gpu_count": 0, "taints": [SPOT]},
        {"conditions": [XID | {"status": "True"}]},
        {"conditions": [XID | {"status": "Unknown"}]},
        {"labels": {"x": "aws-node-termination-handler/spot-itn"}},
        {"taints": [SPOT | {"key": "my/aws-node-termination-handler/spot-itn"}]},
    ],
)
def test_nothing_is_announced_of_other_nodes(node: Node, quiet: dict[str, Any]) -> None:
    Node.objects.filter(pk=node.pk).update(**quiet)

    assert notices.list_nodes() == []


def test_one_query_finds_them_among_many_and_the_map_marks_them(
    admin: Client, node: Node, django_assert_num_queries: Any
) -> None:
    node.taints = []
    rows = []
    for number in range(60):
        copy = Node(**{f.attname: getattr(node, f.attname) for f in Node._meta.concrete_fields})
        copy.pk, copy.uid, copy.name = None, f"many-{number}", f"many-{number:02}"
        copy.taints = [SPOT] if number == 59 else []
        rows.append(copy)
    Node.objects.bulk_create(rows)

    with django_assert_num_queries(1):
        noticed = notices.list_nodes()

    assert [one.name for one in noticed] == ["many-59"]
    fleet = page(admin.get("/fleet"))
    (map_of_nodes,) = [one for one in fleet.all("div") if one.attributes.get("role") == "img"]
    assert map_of_nodes.name.endswith("61 nodes: 60 free, 0 partly held, 0 held, 1 with a notice")


def test_exposed_counts_the_pods_of_a_deployment_on_and_off_the_node(
    node: Node, vision: Team
) -> None:
    from fleet.models import Pod

    workload = occupy(node, vision, "detector", 1_000_000, None)
    for number, where in enumerate((node, node, None)):
        Pod.objects.create(
            cluster=node.cluster,
            workload=workload,
            node=where,
            namespace="vision",
            name=f"p{number}",
            uid=f"p{number}",
            phase="Running",
            created_at=NOW,
        )
    Pod.objects.filter(name="p1").update(ended_at=NOW)

    ((key, pods),) = notices.list_exposed_deployments([node.pk]).items()

    assert (key.namespace, key.deployment) == ("vision", "detector")
    assert (pods.pods, dict(pods.on_nodes)) == (2, {node.pk: 1})
    assert notices.list_exposed_deployments([]) == {}
