"""Version 2 takes traffic step by step: weights at Envoy, promotion, abort."""

from __future__ import annotations

from typing import Any

import pytest

from tests import plain_http
from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Classifier, Person
from tests.rollout_plans import AT_ONCE
from tests.waiting import wait_for

SCRIPT = b"#!/usr/bin/env python\nimport os\nprint(os.getcwd())\n"
STEPS = [
    {"weight": 20, "soak_seconds": 0, "min_requests": 5},
    {"weight": 50, "soak_seconds": 0, "min_requests": 5},
]


@pytest.fixture
def second(demo: DemoProcess, member: Person, served: dict[str, Any]) -> dict[str, Any]:
    """The really quantised second version."""
    return member.upload("filetype", demo.samples / "filetype-int8.onnx", accuracy=0.98)


def start_canary(
    member: Person, lead: Person, deployment_id: int, version_id: int, **more: Any
) -> int:
    body = {"kind": "canary", "version_id": version_id, "steps": STEPS, "plan": AT_ONCE, **more}
    change = member.post(f"deployments/{deployment_id}/changes", body)
    lead.approve(change)

    def opened() -> int | None:
        return member.get(f"deployments/{deployment_id}")["rollout_id"]

    return wait_for("open rollout", opened)


def wait_for_weight(person: Person, rollout_id: int, weight: int) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        rollout = person.get(f"rollouts/{rollout_id}")
        is_there = rollout["observed_weight"] == weight and rollout["phase"] == "running"
        return rollout if is_there else None

    return wait_for(f"weight of {weight} % at the gateway", reached)


def wait_until_promotable(
    person: Person, rollout_id: int, classifier: Classifier
) -> dict[str, Any]:
    def is_promotable() -> dict[str, Any] | None:
        for _ in range(10):
            assert classifier.kind_of(SCRIPT) == "python"
        rollout = person.get(f"rollouts/{rollout_id}")
        return rollout if rollout["is_promotable"] else None

    return wait_for("promotable step", is_promotable)


def wait_for_phase(person: Person, rollout_id: int, phase: str) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        rollout = person.get(f"rollouts/{rollout_id}")
        return rollout if rollout["phase"] == phase else None

    return wait_for(f"rollout {phase}", reached)


def weights_at(demo: DemoProcess, deployment: str) -> list[int]:
    """As Envoy itself serves them, from its admin interface."""
    port = int((demo.folder / "cluster" / "envoy" / "admin_port").read_text())
    dump = plain_http.client.get(f"http://127.0.0.1:{port}/config_dump").json()
    return sorted(
        cluster["weight"]
        for route in _routes(dump)
        if any(str(path).startswith(f"/vision/{deployment}/") for path in route["match"].values())
        for cluster in route["route"].get("weighted_clusters", {}).get("clusters", [])
    )


def _routes(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [route for item in node for route in _routes(item)]
    if not isinstance(node, dict):
        return []
    if "match" in node and "route" in node:
        return [node]
    return [route for item in node.values() for route in _routes(item)]


def test_weight_moves_at_envoy_and_full_promotion_makes_it_stable(
    demo: DemoProcess,
    member: Person,
    lead: Person,
    served: dict[str, Any],
    second: dict[str, Any],
    classifier: Classifier,
) -> None:
    rollout_id = start_canary(member, lead, served["id"], second["id"])

    wait_for_weight(lead, rollout_id, 20)
    assert set(weights_at(demo, "filetype")) == {20, 80}
    first = wait_until_promotable(lead, rollout_id, classifier)
    assert member.http.post(
        f"rollouts/{rollout_id}/promote", json={"evidence_hash": first["evidence_hash"]}
    ).json()["code"] in {"role_required", "four_eyes"}
    lead.post(f"rollouts/{rollout_id}/promote", {"evidence_hash": first["evidence_hash"]})
    wait_for_weight(lead, rollout_id, 50)
    assert set(weights_at(demo, "filetype")) == {50}
    last = wait_until_promotable(lead, rollout_id, classifier)
    assert last["stable_requests"] > 0
    assert last["candidate_requests"] > 0
    lead.post(f"rollouts/{rollout_id}/promote-fully", {"evidence_hash": last["evidence_hash"]})

    wait_for_phase(lead, rollout_id, "completed")
    deployment = member.get(f"deployments/{served['id']}")
    assert deployment["desired"]["stable"]["version_id"] == second["id"]
    assert deployment["desired"]["candidate"] is None
    assert deployment["url"] == served["url"]
    assert classifier.kind_of(SCRIPT) == "python"


def test_anyone_of_the_team_can_abort_and_all_traffic_goes_back(
    member: Person,
    lead: Person,
    served: dict[str, Any],
    second: dict[str, Any],
    classifier: Classifier,
) -> None:
    before = member.get(f"deployments/{served['id']}")["desired"]["stable"]["number"]
    rollout_id = start_canary(member, lead, served["id"], second["id"])
    wait_for_weight(lead, rollout_id, 20)

    member.post(f"rollouts/{rollout_id}/abort", {"reason": "changed my mind"})

    wait_for_phase(member, rollout_id, "aborted")
    deployment = member.get(f"deployments/{served['id']}")
    assert deployment["desired"]["stable"]["number"] == before
    assert deployment["desired"]["candidate_weight"] == 0
    assert classifier.kind_of(SCRIPT) == "python"
