"""Pipelines through the API: the same refusals, by the same places, as on the page."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from deployments.models import Pipeline
from portal.accounts.models import User
from tests.deployments.pipelines_world import (
    ENSEMBLE,
    members,
    node,
    reconcile_now,
    serving,
    start_router,
    step,
)
from tests.deployments.world import World

URL = "/api/v1/pipelines"


def client(user: User) -> APIClient:
    made = APIClient()
    made.force_authenticate(user)
    return made


def body(world: World, spec: dict[str, Any] = ENSEMBLE) -> dict[str, Any]:
    return {"team": "vision", "cluster_id": world.cluster_id, "name": "both", **spec}


def test_a_pipeline_from_request_to_retirement(world: World) -> None:
    members(world)
    response = client(world.member).post(URL, body(world) | {"comment": "both"}, format="json")
    assert response.status_code == 201
    change = response.json()
    assert (change["kind"], change["state"], change["pipeline"]) == ("create", "submitted", "both")
    assert [approval["description"] for approval in change["required_approvals"]] == [
        "0 of 1 approval by a lead or platform admin"
    ]
    decide = f"/api/v1/pipeline-changes/{change['id']}"
    decision = {"evidence_hash": change["evidence_hash"]}
    refused = client(world.member).post(f"{decide}/approve", decision, format="json")
    assert (refused.status_code, refused.json()["code"]) == (403, "role_required")

    done = client(world.lead).post(f"{decide}/approve", decision, format="json")

    assert (done.status_code, done.json()["state"]) == (200, "approved")
    pipeline = reconcile_now(Pipeline.objects.get())
    start_router(world, pipeline)
    reconcile_now(pipeline)
    shown = client(world.viewer).get(f"{URL}/{pipeline.pk}").json()
    assert (shown["state"], shown["url"]) == ("ready", "http://gateway.example/vision/both")
    assert [condition["type"] for condition in shown["observed"]["conditions"]] == [
        "Ready",
        "RouterAvailable",
    ]
    assert shown["desired"]["nodes"][0]["steps"][1]["is_required"] is True
    assert client(world.viewer).get(URL).json()["results"][0]["id"] == pipeline.pk
    assert client(world.stranger).get(URL).json()["results"] == []
    retired = client(world.member).post(f"{URL}/{pipeline.pk}/retire", {}, format="json")
    assert (retired.status_code, retired.json()["kind"]) == (201, "retire")


def test_a_chain_of_answers_is_refused_with_what_works_instead(world: World) -> None:
    members(world)
    chain = node("sequence", step("detector"), step("classifier", data="$response"))
    answer = client(world.member).post(URL, body(world, {"nodes": [chain]}), format="json")

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["nodes.0.steps.1.data"]
    assert "Triton ensemble" in answer.json()["detail"]
    assert not Pipeline.objects.exists()


def test_a_preview_shows_checks_and_manifests_and_stores_nothing(world: World) -> None:
    members(world)
    good = client(world.member).post(f"{URL}/preview", body(world), format="json").json()
    assert good["is_ok"] is True
    assert "kind: InferenceGraph" in good["yaml"]
    weights = node("splitter", step("detector", weight=5), step("classifier", weight=5))
    bad = client(world.member).post(
        f"{URL}/preview", body(world, {"nodes": [weights]}), format="json"
    )
    assert (
        bad.json()["wrong"]["nodes.0.steps"]
        == "The weights of root add up to 10. They must add up to 100."
    )
    assert not Pipeline.objects.exists()


@pytest.mark.parametrize(("who", "status"), [("member", 201), ("viewer", 403), ("stranger", 404)])
def test_who_may_request_other_steps(world: World, who: str, status: int) -> None:
    pipeline = serving(world)
    other = {"nodes": [node("sequence", step("detector"), step("classifier"))]}
    answer = client(getattr(world, who)).put(f"{URL}/{pipeline.pk}", other, format="json")
    assert answer.status_code == status
    assert pipeline.changes.count() == (2 if status == 201 else 1)
