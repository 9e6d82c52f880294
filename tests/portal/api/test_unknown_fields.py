"""A misspelt field is refused by name with the nearest known one; nothing is written."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from deployments.models import ChangeRequest, Deployment
from portal.accounts.models import Team, User
from tests.deployments.world import World

SPEC = {
    "engine": "kserve-triton",
    "instance_type": "g5.xlarge",
    "network": {"access": "open"},
}


def client_of(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def new_deployment(world: World, **spec: Any) -> dict[str, Any]:
    return {
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "name": "detector",
        "environment": "production",
        "spec": {**SPEC, **spec},
    }


def errors_of(response: Any) -> dict[str, str]:
    assert response.status_code == 422, response.content
    return {error["field"]: error["detail"] for error in response.json()["errors"]}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (
            {"scalling": {}},
            "spec.scalling",
            'There is no field "scalling". Did you mean "scaling"?',
        ),
        (
            {"placement": {"affinity": {}}},
            "spec.placement.affinity",
            'There is no field "affinity". Remove it.',
        ),
        (
            {"scaling": {"office_hours": {"timezon": "UTC"}}},
            "spec.scaling.office_hours.timezon",
            'There is no field "timezon". Did you mean "timezone"?',
        ),
        (
            {"additional_models": [{"model": "other", "version": 1, "warmup": True}]},
            "spec.additional_models[0].warmup",
            'There is no field "warmup". Did you mean "warm_up"?',
        ),
    ],
)
def test_a_misspelt_field_of_a_spec_is_named_with_its_place(
    world: World, spec: dict[str, Any], field: str, message: str
) -> None:
    client = client_of(world.member)

    for address in ("deployments", "deployments/preflight"):
        response = client.post(f"/api/v1/{address}", new_deployment(world, **spec), format="json")

        assert errors_of(response) == {field: message}
    assert not ChangeRequest.objects.exists()
    assert not Deployment.objects.exists()


def test_a_misspelt_field_is_reported_with_all_other_errors(world: World) -> None:
    body = {**new_deployment(world), "nam": "detector", "version_id": "first"}
    del body["name"]

    response = client_of(world.member).post("/api/v1/deployments", body, format="json")

    assert errors_of(response) == {
        "nam": 'There is no field "nam". Did you mean "name"?',
        "name": "This field is required.",
        "version_id": "A valid integer is required.",
    }


def test_a_new_team_with_a_misspelt_quota_is_not_made(world: World) -> None:
    body = {"slug": "audio", "name": "Audio", "quota_gpu": 4}

    response = client_of(world.admin).post("/api/v1/teams", body, format="json")

    assert errors_of(response)["quota_gpu"].endswith('Did you mean "quota_gpus"?')
    assert not Team.objects.filter(slug="audio").exists()


def test_a_misspelt_filter_never_lists_everything(world: World) -> None:
    response = client_of(world.member).get("/api/v1/deployments?sate=ready")

    assert errors_of(response) == {"sate": 'There is no field "sate". Did you mean "state"?'}


def test_filters_stand_beside_the_parameters_of_pages(world: World) -> None:
    response = client_of(world.member).get("/api/v1/deployments?team=vision&limit=5&cursor=")

    assert response.status_code == 200


def test_a_very_long_name_is_cut_in_the_answer(world: World) -> None:
    body = {"slug": "audio", "name": "Audio", "x" * 5000: 1}

    response = client_of(world.admin).post("/api/v1/teams", body, format="json")

    assert "x" * 60 in errors_of(response)
    assert len(response.content) < 1000
