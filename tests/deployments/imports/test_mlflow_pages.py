"""Choose what to import from a real MLflow server, on the page and by REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.models import Import
from portal.accounts.models import User
from tests.deployments.imports.conftest import run_until_over, worked
from tests.deployments.imports.mlflow_registry import Registry
from tests.deployments.uploading import People
from tests.page import page

pytestmark = [pytest.mark.django_db]
API = "/api/v1/mlflow-servers"


@pytest.fixture
def registry(mlflow_registry: Registry, settings: Any) -> Registry:
    settings.SLIPWAY_IMPORT_MLFLOW = {"lab": mlflow_registry.address}
    settings.SLIPWAY_IMPORT_MLFLOW_CREDENTIALS = {}
    return mlflow_registry


@pytest.fixture
def member(people: People, s3_store: object, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(people.member)


def test_from_the_server_to_the_version(member: Client, registry: Registry, start: object) -> None:
    assert "/vision/import/mlflow/lab" in member.get("/vision/import").content.decode()
    models = member.get("/vision/import/mlflow/lab?search=box")
    assert "Boxes 2" in page(models).text
    assert "trees" not in page(models).text
    versions = member.get("/vision/import/mlflow/lab?model=Boxes%202")
    assert "champion" in page(versions).text
    link = "/vision/import?server=lab&model=boxes-2&address=models%3A%2FBoxes%202%2F1"
    assert link in page(versions).links.values()

    form = page(member.get(link))
    assert form.field("address").value == "models:/Boxes 2/1"
    assert form.field("model").value == "boxes-2"
    typed = {"team": "vision", "model": "boxes-2", "max_batch_size": "32", "server": "lab"}
    sent = member.post("/vision/import", {**typed, "address": "models:/Boxes 2/1"})

    job = Import.objects.get()
    assert (sent.status_code, sent["Location"]) == (302, f"/vision/imports/{job.pk}")
    run_until_over(worked(job))
    shown = page(member.get(f"/vision/imports/{job.pk}")).text
    assert "of MLflow server lab" in shown
    assert "float32 [-1, 64]" in shown
    assert "conda.yaml" in shown
    version = page(member.get("/vision/models/boxes-2/1")).text
    assert "Origin" in version
    assert "models:/Boxes 2/1" in version
    origin = member.get(f"/api/v1/versions/{job.version_id}").json()["origin"]
    assert origin == {
        "import_id": job.pk,
        "kind": "mlflow",
        "address": "models:/Boxes 2/1",
        "server": "lab",
        "pin": "1",
    }


def test_rest_lists_servers_models_and_versions(member: Client, registry: Registry) -> None:
    assert member.get(API).json() == [{"name": "lab", "address": registry.address}]
    models = member.get(f"{API}/lab/models?search=BOX").json()
    assert [(row["name"], row["newest"]) for row in models["results"]] == [("Boxes 2", "1")]
    (version,) = member.get(f"{API}/lab/versions?model=Boxes 2").json()["results"]
    assert (version["address"], version["aliases"]) == ("models:/Boxes 2/1", ["champion"])
    assert version["tags"] == {"reviewed": "yes"}
    assert member.get(f"{API}/lab/models?search=it's").json()["results"] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("other/models", 404),
        ("lab/versions?model=nothing", 404),
        ("lab/versions", 422),
        ("lab/models?search=%27%22", 422),
        ("lab/models?page=nonsense", 422),
    ],
)
def test_refusals_of_the_lists(member: Client, registry: Registry, path: str, status: int) -> None:
    assert member.get(f"{API}/{path}").status_code == status


def test_who_may_upload_nowhere_sees_no_server(
    people: People, registry: Registry, signed_in: Callable[[User], Client]
) -> None:
    viewer = signed_in(people.viewer)

    assert viewer.get(API).json() == []
    assert viewer.get(f"{API}/lab/models").status_code == 403
    assert viewer.get("/vision/import/mlflow/lab").status_code == 404
    assert registry.address not in viewer.get("/vision/import").content.decode()


def test_a_server_that_does_not_answer_is_explained(
    member: Client, registry: Registry, settings: Any
) -> None:
    settings.SLIPWAY_IMPORT_MLFLOW = {"lab": "http://127.0.0.1:9"}

    shown = member.get("/vision/import/mlflow/lab?search=box")

    assert shown.status_code == 503
    assert "127.0.0.1 does not answer" in page(shown).text
    assert "Try again" in page(shown).text
