"""The pages and the REST of imports: started, watched, canceled, resumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.imports.services import imports
from deployments.models import Import, ModelVersion
from deployments.states import ImportState, VersionState
from portal.accounts.models import User
from tests.deployments import onnx_models
from tests.deployments.imports.conftest import SourceOfModels, Start, worked
from tests.deployments.uploading import People
from tests.page import page

pytestmark = pytest.mark.django_db
MODEL = onnx_models.linear()
FRAGMENT: dict[str, Any] = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "import"}


@pytest.fixture
def member(people: People, s3_store: object, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(people.member)


def test_from_the_form_to_the_version(member: Client, source: SourceOfModels) -> None:
    source.put("m.onnx", MODEL)
    typed = {"team": "vision", "model": "detector", "max_batch_size": "32"}
    typed |= {"address": f"s3://{source.name}/m.onnx", "metrics": "accuracy = 0.5"}

    sent = member.post("/vision/import", typed)

    job = Import.objects.get()
    assert (sent.status_code, sent["Location"]) == (302, f"/vision/imports/{job.pk}")
    waiting = member.get(f"/vision/imports/{job.pk}", **FRAGMENT)
    assert (waiting.status_code, page(waiting).is_whole_page) == (200, False)
    assert "Listing the files of the source." in page(waiting).text
    worked(job)
    done = member.get(f"/vision/imports/{job.pk}", **FRAGMENT)
    assert done.status_code == 286
    assert "1 of 1" in page(done).text
    assert ModelVersion.objects.get().metadata == {"metrics": {"accuracy": 0.5}}
    assert f"s3://{source.name}/m.onnx" in page(member.get("/vision/import")).text


def test_a_refused_address_is_explained_at_its_field(member: Client, settings: Any) -> None:
    settings.SLIPWAY_IMPORT_S3 = []
    typed = {"team": "vision", "model": "detector", "max_batch_size": "32", "address": "s3://abc/m"}

    refused = member.post("/vision/import", typed)

    assert refused.status_code == 422
    assert "SLIPWAY_IMPORT_S3" in page(refused).text
    assert not ModelVersion.objects.exists()


def test_a_failed_import_is_resumed_and_canceled_on_its_page(
    member: Client, source: SourceOfModels, start: Start
) -> None:
    job = worked(start(f"s3://{source.name}/m.onnx"))
    address = f"/vision/imports/{job.pk}"
    shown = page(member.get(address)).text
    assert "There is nothing at" in shown
    assert "Resume" in shown

    assert member.post(f"{address}/resume").status_code == 302
    assert Import.objects.get().state == ImportState.RUNNING
    assert member.post(f"{address}/resume").status_code == 409
    assert member.post(f"{address}/cancel").status_code == 302

    assert ModelVersion.objects.get().state == VersionState.FAILED
    assert "member canceled the import." in page(member.get(address)).text
    assert "Resume" not in page(member.get(address)).text


def test_an_import_is_not_an_upload_to_resume(
    member: Client, source: SourceOfModels, start: Start
) -> None:
    job = start(f"s3://{source.name}/m.onnx")

    assert "Unfinished" not in page(member.get("/vision/upload")).text
    version = member.get("/vision/models/detector/1")
    assert f"/vision/imports/{job.pk}" in version.content.decode()


def test_rest_never_shows_the_query_of_a_url(
    member: Client, people: People, s3_store: object
) -> None:
    sent = member.post(
        "/api/v1/models/vision/detector/imports",
        {"address": "https://models.example/m.onnx?sig=5ecret"},
        content_type="application/json",
    )

    assert sent.status_code == 201
    body = sent.json()
    assert (body["address"], body["state"]) == ("https://models.example/m.onnx", "running")
    assert (body["files_count"], body["copied_bytes"], body["total_bytes"]) == (0, 0, 0)
    shown = member.get(f"/api/v1/imports/{body['id']}").content.decode()
    listed = member.get("/api/v1/imports?state=running")
    assert [row["id"] for row in listed.json()["results"]] == [body["id"]]
    assert "5ecret" not in shown + listed.content.decode() + sent.content.decode()
    imports.cancel(actor=people.member, import_id=body["id"])
    assert Import.objects.get().sealed_url == ""
