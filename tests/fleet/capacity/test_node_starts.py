"""Start times of a node beside those of the same revisions on other nodes of its type."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from fleet.models import Node, Pod, Workload
from portal.accounts.models import Team
from tests.fleet.one_node import NOW, admin, member, nlp, node, occupy, still_clock, vision
from tests.page import page

__all__ = ["admin", "member", "nlp", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]
_SECONDS = {"node": 50, "image": 30, "download": 20, "compare": 2, "load": 8}


def _other(node: Node, **changed: Any) -> Node:
    values = {
        "cluster": node.cluster,
        "name": "local-2",
        "uid": "n2",
        "instance_type": node.instance_type,
        "first_seen_at": NOW,
        "last_seen_at": NOW,
    }
    return Node.objects.create(**{**values, **changed})


def _started(workload: Workload, node: Node, minutes: int, **seconds: int) -> Pod:
    """A pod that became ready so many minutes ago."""
    return Pod.objects.create(
        cluster=node.cluster,
        workload=workload,
        node=node,
        namespace=workload.namespace,
        name=f"{workload.name}-{node.name}-{minutes}",
        uid=f"{workload.name}-{node.name}-{minutes}",
        created_at=NOW - timedelta(minutes=minutes + 5),
        ready_at=NOW - timedelta(minutes=minutes),
        start_seconds={**_SECONDS, **seconds},
    )


def _starts(client: Client, node: Node) -> Any:
    answer = client.get(f"/api/v1/nodes/{node.pk}/starts")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_revision_is_beside_itself_on_nodes_of_the_same_type_only(
    member: Client, node: Node, vision: Team
) -> None:
    detector = occupy(node, vision, "detector", 1_000_000, None)
    for minutes, image in ((1, 90), (2, 70), (3, 200)):
        _started(detector, node, minutes, image=image)
    _started(detector, _other(node), 4)
    _started(detector, _other(node, name="big", uid="n3", instance_type="p5.48xlarge"), 5, image=1)

    assert _starts(member, node) == [
        {
            "team_slug": "vision",
            "deployment": "detector",
            "workload_name": "detector-r1",
            "here": {
                "starts": 3,
                "seconds": 120,
                "steps": {"image": 90, "download": 20, "compare": 2, "load": 8},
            },
            "elsewhere": {
                "starts": 1,
                "seconds": 60,
                "steps": {"image": 30, "download": 20, "compare": 2, "load": 8},
            },
        }
    ]


def test_only_the_last_twenty_starts_count_and_none_that_was_restarted(
    member: Client, node: Node, vision: Team
) -> None:
    detector = occupy(node, vision, "detector", 1_000_000, None)
    for minutes in range(1, 26):
        _started(detector, node, minutes, load=10 if minutes <= 20 else 999)
    restarted = _started(detector, node, 30, load=999)
    Pod.objects.filter(pk=restarted.pk).update(start_seconds={})

    (row,) = _starts(member, node)

    assert (row["here"]["starts"], row["here"]["steps"]["load"]) == (20, 10)
    assert row["elsewhere"] is None


def test_the_revision_that_started_last_is_first_and_those_of_other_teams_are_left_out(
    member: Client, admin: Client, node: Node, vision: Team, nlp: Team
) -> None:
    for minutes, team, name in ((3, vision, "detector"), (2, vision, "ranker"), (1, nlp, "chat")):
        _started(occupy(node, team, name, 100_000, None), node, minutes)

    assert [row["deployment"] for row in _starts(member, node)] == ["ranker", "detector"]
    assert [row["deployment"] for row in _starts(admin, node)] == ["chat", "ranker", "detector"]
    assert "chat" not in page(member.get(f"/fleet/nodes/{node.pk}")).text


def test_the_page_shows_both_and_links_to_the_deployment(
    member: Client, node: Node, vision: Team
) -> None:
    detector = occupy(node, vision, "detector", 1_000_000, None)
    ranker = occupy(node, vision, "ranker", 1_000, None)
    _started(detector, node, 1, image=150)
    _started(detector, _other(node), 2)
    _started(ranker, node, 3)

    shown = page(member.get(f"/fleet/nodes/{node.pk}"))

    detector_row, ranker_row = shown.row("detector-r1"), shown.row("ranker-r1")
    assert detector_row["This node"] == "3 min 1 start"
    assert detector_row["Other g5.12xlarge"] == "1 min 1 start"
    assert detector_row["Image"] == "2.5 min others 30 s"
    assert ranker_row["This node"] == "1 min 1 start"
    assert ranker_row["Other g5.12xlarge"] == "not started there"
    assert ranker_row["Image"] == "30 s"
    assert shown.link("detector-r1") == "/vision/deployments/detector"


def test_a_node_without_starts_shows_no_table(member: Client, node: Node) -> None:
    assert _starts(member, node) == []
    assert "Start times" not in page(member.get(f"/fleet/nodes/{node.pk}")).text
