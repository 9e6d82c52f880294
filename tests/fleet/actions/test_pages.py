"""The pages of fleet actions, and the same in the API."""

from __future__ import annotations

import pytest
from django.test import Client

from fleet.actions.domain.progress import BlockedPod, Progress
from fleet.models import FleetAction, Node
from portal.accounts.models import Role, User
from tests.accounts import make_membership, make_team, make_user
from tests.fleet.actions.conftest import Hands
from tests.fleet.fakes import FakeKube
from tests.page import page

pytestmark = pytest.mark.django_db


def test_from_the_node_to_a_drain_that_is_done(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands, client: Client
) -> None:
    client.force_login(lead)
    address = page(client.get(f"/fleet/nodes/{node.pk}")).link("Drain")
    sent = client.post(address, {"comment": "kernel update", "deadline_minutes": "30"}, follow=True)
    waiting = page(sent)
    client.force_login(admin)
    action = FleetAction.objects.get()
    here = f"/fleet/actions/{action.pk}"
    shown = page(client.get(here))
    body = {"decision": "approve", "evidence_hash": action.evidence_hash}
    approved = client.post(here, body)
    hands.sweep(7)
    done = page(client.get(here))

    assert "Request sent." in waiting.text
    assert "Only a platform admin can decide on fleet actions." in waiting.text
    assert "kernel update" in shown.text
    assert shown.link("detector") == "/vision/deployments/detector"
    assert approved.status_code == 302
    assert "All pods are evicted." in done.text
    assert "Drain node-1" in page(client.get("/fleet/actions")).text
    assert "Done" in page(client.get(f"/fleet/nodes/{node.pk}/actions")).text


def test_a_lead_of_another_team_reads_counts_and_no_names(
    node: Node, lead: User, kube: FakeKube, hands: Hands, client: Client
) -> None:
    other = make_membership(user=make_user(), team=make_team(slug="nlp"), role=Role.LEAD).user
    client.force_login(lead)
    client.post(f"/fleet/nodes/{node.pk}/drain", {"deadline_minutes": "30"})
    action = FleetAction.objects.get()
    FleetAction.objects.update(
        progress=Progress(
            pods=3,
            remaining=2,
            blocked=(BlockedPod("vision/detector-r1-a", "budget detector"),),
        ).to_json(),
        state="applying",
    )
    own = page(client.get(f"/fleet/actions/{action.pk}"))
    client.force_login(other)

    texts = [
        page(client.get(address)).text
        for address in (f"/fleet/actions/{action.pk}", f"/fleet/nodes/{node.pk}/drain")
    ]
    in_api = client.get(f"/api/v1/fleet-actions/{action.pk}").json()

    assert "vision/detector-r1-a" in own.text
    assert "1 of 3" in own.text
    assert [("detector" in text, "vision" in text) for text in texts] == [(False, False)] * 2
    assert in_api["evidence"]["deployments"] == [
        {
            "team_slug": "",
            "deployment": "",
            "namespace": "",
            "pods": 2,
            "gpus": 2,
            "without_room": 1,
        }
    ]


def test_a_refusal_keeps_what_was_typed(
    node: Node, lead: User, kube: FakeKube, hands: Hands, client: Client
) -> None:
    client.force_login(lead)

    answer = client.post(
        f"/fleet/nodes/{node.pk}/drain", {"comment": "kernel update", "deadline_minutes": "1"}
    )

    assert answer.status_code == 422
    assert "kernel update" in page(answer).text
    assert FleetAction.objects.count() == 0


def test_the_api_requests_decides_and_lists(
    node: Node, lead: User, admin: User, kube: FakeKube, hands: Hands, client: Client
) -> None:
    def post(address: str, body: dict[str, object]) -> tuple[int, dict[str, object]]:
        answer = client.post(f"/api/v1/{address}", body, content_type="application/json")
        return answer.status_code, answer.json()

    client.force_login(lead)
    status, made = post(f"nodes/{node.pk}/drain", {"deadline_minutes": 30, "comment": "update"})
    again, problem = post(f"nodes/{node.pk}/cordon", {})
    refused, _ = post(f"fleet-actions/{made['id']}/approve", {"evidence_hash": "x"})
    client.force_login(admin)
    stale, changed = post(f"fleet-actions/{made['id']}/approve", {"evidence_hash": "x"})
    ok, approved = post(
        f"fleet-actions/{made['id']}/approve", {"evidence_hash": made["evidence_hash"]}
    )
    hands.sweep(2)
    canceled, _ = post(f"fleet-actions/{made['id']}/cancel", {"reason": "stop"})
    hands.sweep(3)
    listed = client.get("/api/v1/fleet-actions?state=canceled").json()["results"]

    assert (status, made["state"], made["parameters"]) == (
        201,
        "submitted",
        {"deadline_minutes": 30, "evict_unmanaged": False},
    )
    assert (again, problem["code"], refused) == (409, "action_open", 403)
    assert (stale, changed["code"]) == (409, "evidence_changed")
    assert (ok, approved["state"], canceled) == (200, "approved", 200)
    assert [(row["id"], row["target"], row["state"]) for row in listed] == [
        (made["id"], "node-1", "canceled")
    ]
