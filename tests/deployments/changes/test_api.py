"""The REST API of delivery: the same checks, messages and codes as the services, and no N+1."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment, Rollout
from tests.deployments import canaries
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE

STEPS = [{"weight": 20, "soak_seconds": 0, "min_requests": 0}]


def client(user: Any) -> APIClient:
    made = APIClient()
    if user is not None:
        made.force_authenticate(user)
    return made


def body(world: World, **changed: Any) -> dict[str, Any]:
    return {
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "name": "detector",
        "spec": {
            "engine": "kserve-triton",
            "instance_type": "g5.xlarge",
            "network": {"access": "open"},
        },
        "comment": "first",
        **changed,
    }


def test_the_whole_way_by_rest(world: World) -> None:
    member, lead = client(world.member), client(world.lead)
    draft = {name: value for name, value in body(world).items() if name != "comment"}
    checked = member.post("/api/v1/deployments/preflight", draft, format="json")
    assert checked.status_code == 200, checked.data
    assert checked.data["can_submit"]

    response = member.post("/api/v1/deployments", body(world), format="json")
    assert response.status_code == 201, response.data
    change_id, shown = response.data["id"], response.data["evidence_hash"]
    decided = lead.post(
        f"/api/v1/changes/{change_id}/approve", {"evidence_hash": shown}, format="json"
    )
    assert (decided.status_code, decided.data["state"]) == (200, "approved")
    world.work()
    world.cluster.make_ready("detector-r1")
    deployment = Deployment.objects.get()
    world.reconcile_now(deployment)

    got = member.get(f"/api/v1/deployments/{deployment.pk}").data
    assert got["url"] == "http://gateway.example/vision/detector"
    assert got["state"] == "ready"
    assert got["is_current"] is True
    assert got["desired"]["stable"]["version"] == "detector:1"
    assert got["observed"]["revisions"]["r1"]["ready"] is True

    canary = member.post(
        f"/api/v1/deployments/{deployment.pk}/changes",
        {"kind": "canary", "version_id": world.version2.pk, "steps": STEPS, "plan": AT_ONCE},
        format="json",
    )
    assert canary.status_code == 201, canary.data
    lead.post(
        f"/api/v1/changes/{canary.data['id']}/approve",
        {"evidence_hash": canary.data["evidence_hash"]},
        format="json",
    )
    world.work()
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    world.reconcile_now(deployment)
    canaries.serve(world, deployment, 20)
    rollout_id = member.get(f"/api/v1/deployments/{deployment.pk}").data["rollout_id"]
    shown_rollout = lead.get(f"/api/v1/rollouts/{rollout_id}").data
    assert (
        shown_rollout["phase"],
        shown_rollout["observed_weight"],
        shown_rollout["can_promote"],
    ) == ("running", 20, True)
    done = lead.post(
        f"/api/v1/rollouts/{rollout_id}/promote",
        {"evidence_hash": shown_rollout["evidence_hash"]},
        format="json",
    )
    assert (done.status_code, done.data["phase"]) == (200, "promoting")
    stopped = member.post(f"/api/v1/rollouts/{rollout_id}/abort", {"reason": "no"}, format="json")
    assert (stopped.status_code, stopped.data["phase"]) == (200, "aborting")
    events = member.get(f"/api/v1/deployments/{deployment.pk}/events").data["results"]
    assert events[0]["message"] == "aborted: no"


def test_who_may_read(world: World) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    addresses = [
        f"/api/v1/deployments/{deployment.pk}",
        f"/api/v1/deployments/{deployment.pk}/revisions",
        f"/api/v1/deployments/{deployment.pk}/events",
        f"/api/v1/changes/{change.pk}",
        f"/api/v1/rollouts/{Rollout.objects.get().pk}",
    ]
    expected = {"member": 200, "lead": 200, "viewer": 200, "admin": 200, "stranger": 404}

    for who, status in expected.items():
        reader = client(getattr(world, who))
        answers = {address: reader.get(address).status_code for address in addresses}
        assert answers == dict.fromkeys(addresses, status), who
    nobody = client(None)
    assert {nobody.get(address).status_code for address in addresses} == {401}


@pytest.mark.parametrize(
    ("who", "expected"),
    [("member", 201), ("lead", 201), ("admin", 201), ("viewer", 403), ("stranger", 404)],
)
def test_who_may_request(world: World, who: str, expected: int) -> None:
    answer = client(getattr(world, who)).post("/api/v1/deployments", body(world), format="json")

    assert answer.status_code == expected
    assert ChangeRequest.objects.count() == (expected == 201)
    anonymous = client(None).post("/api/v1/deployments", body(world), format="json")
    assert anonymous.status_code == 401


@pytest.mark.parametrize(
    ("changed", "status", "code", "field"),
    [
        ({"name": "Bad Name"}, 422, "invalid", "name"),
        ({"spec": {"engine": "vllm", "instance_type": "g5.xlarge"}}, 422, "invalid", "spec.engine"),
        (
            {
                "spec": {
                    "engine": "triton",
                    "instance_type": "g5.xlarge",
                    "max_replicas": 2,
                    "scaling": {"kind": "fixed"},
                }
            },
            422,
            "invalid",
            "spec.max_replicas",
        ),
        (
            {
                "spec": {
                    "engine": "kserve-triton",
                    "instance_type": "g5.xlarge",
                    "min_replicas": 99,
                    "max_replicas": 99,
                    "network": {"access": "open"},
                }
            },
            422,
            "quota_exceeded",
            "max_replicas",
        ),
        ({"version_id": 10**18}, 404, "not_found", ""),
        ({"cluster_id": 10**18}, 404, "not_found", ""),
        ({"cluster_id": 10**30}, 422, "invalid", "cluster_id"),
    ],
)
def test_bad_input_is_a_problem_with_its_field(
    world: World, changed: dict[str, Any], status: int, code: str, field: str
) -> None:
    answer = client(world.member).post("/api/v1/deployments", body(world, **changed), format="json")

    assert (answer.status_code, answer.data["code"]) == (status, code), answer.data
    fields = [error["field"] for error in answer.data.get("errors", [])]
    assert not field or field in fields
    assert ChangeRequest.objects.count() == 0


def test_a_repeated_request_with_its_key_makes_one_deployment(world: World) -> None:
    member = client(world.member)

    answers = [
        member.post(
            "/api/v1/deployments", body(world), format="json", headers={"Idempotency-Key": "k1"}
        )
        for _ in range(2)
    ]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].data["id"] == answers[1].data["id"]
    assert Deployment.objects.count() == 1


@pytest.mark.parametrize("path", ["deployments", "changes"])
def test_lists_take_the_same_number_of_queries_at_any_length(world: World, path: str) -> None:
    counts = []
    for names in (("one",), ("two", "three", "four")):
        for name in names:
            requests.request_deploy(actor=world.member, draft=world.draft(name))
        with CaptureQueriesContext(
            connection,
        ) as queries:
            answer = client(world.member).get(f"/api/v1/{path}")
        assert len(answer.data["results"]) == Deployment.objects.count()
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_lists_hide_what_other_teams_have(world: World) -> None:
    requests.request_deploy(actor=world.member, draft=world.draft())

    for path in ("deployments", "changes"):
        assert client(world.stranger).get(f"/api/v1/{path}").data["results"] == []


def test_a_list_leaves_out_what_one_request_shows_of_its_decision(world: World) -> None:
    world.serving()
    member = client(world.member)

    (listed,) = member.get("/api/v1/changes").json()["results"]
    one = member.get(f"/api/v1/changes/{listed['id']}").json()

    assert one["decided"]["title"] == "Deploy detector:1 as detector"
    assert listed == {name: value for name, value in one.items() if name != "decided"}
