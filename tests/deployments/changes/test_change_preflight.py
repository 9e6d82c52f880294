"""The checks of a change before its request: the same as those of the request; nothing is written."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from rest_framework.test import APIClient

from deployments.changes.services import requests
from deployments.lifecycle.services import stop
from deployments.models import ChangeRequest, Deployment, Model, ModelVersion, Revision
from fleet.kube.domain.errors import ObjectInvalid
from portal.accounts.models import Team
from portal.core import clock
from tests.deployments.world import World

STEPS = [{"weight": 20, "soak_seconds": 0, "min_requests": 0}]
SPEC = {
    "engine": "kserve-triton",
    "instance_type": "g5.xlarge",
    "network": {"access": "open"},
}


def post(world: World, deployment: Deployment, where: str, body: Any, who: str = "member") -> Any:
    client = APIClient()
    client.force_authenticate(getattr(world, who))
    return client.post(f"/api/v1/deployments/{deployment.pk}/{where}", body, format="json")


def rows() -> dict[str, list[Any]]:
    models = [model for model in apps.get_models() if model._meta.app_label != "contenttypes"]
    return {model.__name__: list(model._base_manager.order_by("pk").values()) for model in models}


def canary(world: World, **changed: Any) -> dict[str, Any]:
    return {"kind": "canary", "version_id": world.version2.pk, "steps": STEPS, **changed}


def ready(world: World, kind: str) -> tuple[Deployment, dict[str, Any]]:
    """A deployment for which the change may be requested, and its body."""
    deployment = world.serving(environment="staging")
    if kind == "roll_back":
        Revision.objects.create(
            deployment=deployment,
            number=2,
            version=world.version2,
            spec=deployment.stable_revision.spec,
            created_by=world.member,
            created_at=clock.now(),
        )
        return deployment, {"kind": kind, "revision_number": 2}
    if kind == "start":
        stop.stop(actor=world.member, deployment_id=deployment.pk)
        return world.reconcile_now(deployment), {"kind": kind}
    if kind == "scale":
        return deployment, {"kind": kind, "min_replicas": 2, "max_replicas": 3}
    return deployment, canary(world, spec={**SPEC, "cpu": "3"})


@pytest.mark.parametrize("kind", ["canary", "roll_back", "scale", "start"])
def test_the_ticks_are_those_of_the_request_and_nothing_is_written(world: World, kind: str) -> None:
    deployment, body = ready(world, kind)
    before, writes = rows(), list(world.cluster.writes)

    preview = post(world, deployment, "changes/preflight", body)
    after = rows()
    response = post(world, deployment, "changes", body)

    assert preview.status_code == 200, preview.data
    assert after == before
    assert world.cluster.writes == writes
    assert preview.data["can_submit"] is True
    assert response.status_code == 201, response.data
    change = ChangeRequest.objects.get(pk=response.data["id"])
    assert [dict(check) for check in preview.data["checks"]] == change.checks
    assert preview.data["cost"] == change.cost
    assert "kind: InferenceService" in preview.data["manifests"]
    assert len(change.checks) > 7


def test_of_a_retirement_nothing_is_checked(world: World) -> None:
    deployment = world.serving()

    preview = post(world, deployment, "changes/preflight", {"kind": "retire"})

    assert preview.data == {"can_submit": True, "checks": [], "cost": None, "manifests": ""}
    assert ChangeRequest.objects.count() == 1


def test_a_check_that_refuses_is_a_tick_here_and_a_problem_there(world: World) -> None:
    deployment = world.serving()
    Team.objects.update(quota_gpus=1)
    world.cluster.refuse["InferenceService"] = ObjectInvalid("no such runtime")

    preview = post(world, deployment, "changes/preflight", canary(world))
    response = post(world, deployment, "changes", canary(world))

    refusals = [
        check for check in preview.data["checks"] if check["ok"] is False and check["is_blocking"]
    ]
    assert (preview.status_code, preview.data["can_submit"]) == (200, False)
    assert [refusal["name"] for refusal in refusals] == ["Quota", "Server dry-run"]
    assert response.status_code == 422
    text = " ".join(
        f"{refusal['name']}: {refusal['detail']} {refusal['fix']}".strip() for refusal in refusals
    )
    assert response.data["detail"] == text


BAD: tuple[tuple[dict[str, Any], int], ...] = (
    ({}, 422),
    ({"kind": "deploy"}, 422),
    ({"kind": "canary"}, 422),
    ({"kind": "canary", "version_id": 10**9, "steps": STEPS}, 404),
    ({"kind": "canary", "version_id": "version2", "steps": [{"weight": 120}]}, 422),
    ({"kind": "canary", "version_id": "version2", "steps": STEPS, "spec": {"engine": "x"}}, 422),
    (
        {
            "kind": "canary",
            "version_id": "version2",
            "steps": STEPS,
            "spec": {**SPEC, "cpu": "much"},
        },
        422,
    ),
    ({"kind": "canary", "version_id": "other", "steps": STEPS}, 422),
    ({"kind": "scale", "min_replicas": 2}, 422),
    ({"kind": "scale", "min_replicas": 3, "max_replicas": 2}, 422),
    ({"kind": "scale", "min_replicas": 1, "max_replicas": 1}, 422),
    ({"kind": "roll_back", "revision_number": 9}, 422),
    ({"kind": "start"}, 409),
    ({"kind": "retire", "comment": "x" * 5000}, 422),
)


@pytest.mark.parametrize(("body", "status"), BAD)
def test_bad_input_is_the_problem_that_the_request_would_get(
    world: World, body: dict[str, Any], status: int
) -> None:
    deployment = world.serving()
    named = {"version2": world.version2.pk, "other": _of_another_model(world)}
    sent = {
        key: named.get(value, value) if isinstance(value, str) else value
        for key, value in body.items()
    }
    before = rows()

    preview = post(world, deployment, "changes/preflight", sent)
    response = post(world, deployment, "changes", sent)

    assert preview.status_code == response.status_code == status, preview.data
    assert {**preview.data, "instance": ""} == {**response.data, "instance": ""}
    assert rows() == before


def _of_another_model(world: World) -> int:

    at = clock.now()
    model = Model.objects.create(
        team=world.team, name="other", created_by=world.member, created_at=at, changed_at=at
    )
    version = ModelVersion.objects.get(pk=world.version2.pk)
    version.pk, version.model = None, model
    version.save(force_insert=True)
    return version.pk


def test_while_another_change_is_open_both_are_refused_alike(world: World) -> None:
    deployment = world.serving()
    requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
    )

    preview = post(world, deployment, "changes/preflight", canary(world))
    response = post(world, deployment, "changes", canary(world))

    assert (preview.status_code, preview.data["code"]) == (409, "change_open")
    assert preview.data["detail"] == response.data["detail"]


@pytest.mark.parametrize(
    ("who", "status"), [("lead", 200), ("viewer", 403), ("stranger", 404), ("admin", 200)]
)
def test_who_may_read(world: World, who: str, status: int) -> None:
    deployment = world.serving()

    preview = post(world, deployment, "changes/preflight", canary(world), who)

    assert preview.status_code == status
