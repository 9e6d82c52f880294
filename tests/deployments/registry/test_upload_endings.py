"""A file is checked before it is sent; a verification can be stopped, a failed upload discarded."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from django.test import Client

from deployments.models import ArtifactFile, Model, ModelVersion
from deployments.registry.gateways import sandbox, sandbox_server
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.selectors import versions
from deployments.registry.services import (
    models,
    upload_endings,
    uploads,
    verification,
)
from deployments.registry.services.upload_validation import DraftFile, UploadDraft
from deployments.states import VersionState
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from tests.deployments import onnx_models
from tests.deployments.uploading import People, Upload, draft_of, send_parts, versions_in
from tests.fixtures import hostile_graphs
from tests.page import page

pytestmark = pytest.mark.django_db
START = "/api/v1/models/vision/notes/versions"


def encoded(body: bytes) -> str:
    return base64.b64encode(body[:4096]).decode()


@pytest.mark.parametrize(
    ("filename", "head", "message"),
    [
        ("notes.txt", b"Dear team", "notes.txt is an unsupported format"),
        ("notes.onnx", b"Dear team", "notes.onnx is an unsupported format"),
        ("notes.txt", b"", "Unsupported file extension: notes.txt"),
        ("model.h5", b"\x89HDF\r\n\x1a\n", "HDF5"),
        ("model.7z", b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    ],
)
def test_a_file_that_is_no_model_is_refused_before_anything_is_sent(
    people: People, s3_store: S3Store, client: Client, filename: str, head: bytes, message: str
) -> None:
    client.force_login(people.member)
    body = {"files": [{"path": filename, "size_bytes": 20, "head": encoded(head)}]}

    answer = client.post(START, body, content_type="application/json")

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["files"]
    assert message in answer.json()["errors"][0]["detail"]
    assert Model.objects.count() == ModelVersion.objects.count() == AuditEvent.objects.count() == 0
    assert s3_store.client.list_multipart_uploads(Bucket=s3_store.bucket).get("Uploads", []) == []


def test_the_content_decides_over_the_name(
    people: People, s3_store: S3Store, client: Client
) -> None:
    client.force_login(people.member)
    file = {"path": "a.txt", "size_bytes": 20, "head": encoded(onnx_models.linear())}
    body = {"files": [file]}

    assert client.post(START, body, content_type="application/json").status_code == 201


def test_a_beginning_that_is_no_base64_is_a_field_error(people: People, client: Client) -> None:
    client.force_login(people.member)
    body = {"files": [{"path": "a.onnx", "size_bytes": 20, "head": "%%%"}]}

    answer = client.post(START, body, content_type="application/json")

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["files[0].head"]


def stop_from_elsewhere(monkeypatch: pytest.MonkeyPatch, people: People) -> None:
    """Somebody presses Stop while the worker's process reads the file."""
    real = sandbox.run

    def run(*args: Any, while_running: Callable[[], None], **options: Any) -> Any:
        def stop_once() -> None:
            version = ModelVersion.objects.get()
            if version.state == VersionState.VERIFYING:
                upload_endings.stop_verification(actor=people.member, version_id=version.pk)
            while_running()

        return real(*args, while_running=stop_once, **options)

    monkeypatch.setattr(sandbox, "run", run)


def test_stopping_ends_the_process_and_removes_the_bytes(
    people: People, upload: Upload, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = upload(hostile_graphs.nested_branches(12))
    stop_from_elsewhere(monkeypatch, people)

    verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.FAILED
    assert version.state_reason == "member stopped the verification."
    assert version.examination_deaths == 0
    # The server that starts the sandboxed processes stays; they are its children.
    (server,) = sandbox_server._servers
    assert psutil.Process(server._process.pid).children() == []
    assert version.lease_token == ""
    event = AuditEvent.objects.get(action="version.stopped")
    assert (event.actor_name, event.object_label) == ("member", "detector:1")

    verification.advance(version.pk)
    assert s3_store.list_keys("") == []


def test_stop_is_one_action_of_the_page_and_of_the_api(
    people: People, upload: Upload, client: Client
) -> None:
    client.force_login(people.member)
    first, second = upload(onnx_models.linear()), upload(onnx_models.linear(scale=2))
    shown = page(client.get("/vision/models/detector/1"))
    (stop,) = (form for form in shown.all("form") if "Stop verification" in form.buttons)
    assert stop.attributes["action"] == "/vision/models/detector/1/stop"

    assert client.post("/vision/models/detector/1/stop").status_code == 302
    assert (
        client.post(f"/api/v1/versions/{second.pk}/stop", content_type="application/json").json()[
            "state"
        ]
        == "failed"
    )

    first.refresh_from_db()
    assert first.state == VersionState.FAILED
    with pytest.raises(Conflict, match="is failed; it is not being verified"):
        upload_endings.stop_verification(actor=people.member, version_id=first.pk)


def test_a_viewer_sees_no_stop(people: People, upload: Upload, client: Client) -> None:
    version = upload(onnx_models.linear())
    client.force_login(people.viewer)

    assert b"/1/stop" not in client.get("/vision/models/detector/1").content
    with pytest.raises(Forbidden):
        upload_endings.stop_verification(actor=people.viewer, version_id=version.pk)
    assert ModelVersion.objects.get().state == VersionState.VERIFYING


def test_a_discarded_failed_upload_leaves_no_model(
    people: People, verified: Upload, client: Client, s3_store: S3Store
) -> None:
    version = verified(hostile_graphs.cycle())
    assert version.state == VersionState.FAILED
    client.force_login(people.member)
    assert "/vision/models/detector/1/discard" in client.get("/vision/upload").content.decode()

    assert client.post("/vision/models/detector/1/discard").status_code == 302

    with pytest.raises(NotFound):
        versions.get_version(actor=people.member, version_id=version.pk)
    assert "/vision/models/detector/1/discard" not in client.get("/vision/upload").content.decode()
    verification.advance(version.pk)
    assert ModelVersion.objects.count() == Model.objects.count() == 0
    assert s3_store.list_keys("") == []
    event = AuditEvent.objects.get(action="version.discarded")
    assert (event.object_label, event.before["filename"]) == ("detector:1", "detector.onnx")


def test_a_discarded_open_upload_is_aborted_at_the_store(
    people: People, s3_store: S3Store, client: Client
) -> None:
    draft = draft_of("a.onnx", 20)
    version = uploads.start(
        actor=people.member, team_slug="vision", model_name="detector", draft=draft
    )
    client.force_login(people.member)

    assert (
        client.post(
            f"/api/v1/versions/{version.pk}/discard", content_type="application/json"
        ).status_code
        == 204
    )

    assert client.get(f"/api/v1/versions/{version.pk}").status_code == 404
    verification.advance(version.pk)
    assert ModelVersion.objects.count() == Model.objects.count() == 0
    assert s3_store.client.list_multipart_uploads(Bucket=s3_store.bucket).get("Uploads", []) == []


@pytest.mark.parametrize("is_sent", [False, True], ids=["abandoned", "failed"])
def test_a_discarded_folder_leaves_no_byte_of_any_file(
    people: People, s3_store: S3Store, client: Client, *, is_sent: bool
) -> None:
    """Abandoned with one file stored, one sent but not assembled and one never begun; or failed as a whole."""
    files = {"a.onnx": hostile_graphs.cycle(), "b.bin": b"b" * 20, "c.bin": b"c" * 20}
    draft = UploadDraft(files=[DraftFile(path, len(body)) for path, body in files.items()])
    version = uploads.start(
        actor=people.member, team_slug="vision", model_name="detector", draft=draft
    )
    for path in list(files)[: 3 if is_sent else 2]:
        send_parts(people.member, version, files[path], path=path)
    if is_sent:
        uploads.complete(actor=people.member, version_id=version.pk)
        verification.advance(version.pk)
        version.refresh_from_db()
        assert version.state == VersionState.FAILED
    else:
        uploads.complete_files(actor=people.member, version_id=version.pk, paths=["a.onnx"])
        assert s3_store.list_keys("") != []
    client.force_login(people.member)

    assert client.post("/vision/models/detector/1/discard").status_code == 302

    verification.advance(version.pk)
    assert (
        ModelVersion.objects.count() == Model.objects.count() == ArtifactFile.objects.count() == 0
    )
    assert versions_in(s3_store) == []
    assert s3_store.client.list_multipart_uploads(Bucket=s3_store.bucket).get("Uploads", []) == []


def test_a_model_with_anything_in_it_stays(people: People, verified: Upload) -> None:
    models.create(actor=people.member, team_slug="vision", name="detector", description="Boxes.")
    failed = verified(hostile_graphs.cycle())
    upload_endings.discard(actor=people.member, version_id=failed.pk)
    verification.advance(failed.pk)
    assert [model.name for model in Model.objects.all()] == ["detector"]

    kept = verified(onnx_models.linear(), model="other")
    failed = verified(hostile_graphs.cycle(), model="other")
    upload_endings.discard(actor=people.member, version_id=failed.pk)
    verification.advance(failed.pk)
    assert list(ModelVersion.objects.values_list("pk", flat=True)) == [kept.pk]


def test_only_failed_and_unfinished_uploads_are_discarded(people: People, verified: Upload) -> None:
    version = verified(onnx_models.linear())

    with pytest.raises(Conflict, match="archive the version"):
        upload_endings.discard(actor=people.member, version_id=version.pk)
    with pytest.raises(Forbidden):
        upload_endings.discard(actor=people.viewer, version_id=version.pk)

    version.refresh_from_db()
    assert (version.state, version.discarded_at) == (VersionState.READY, None)
    assert not AuditEvent.objects.filter(action="version.discarded").exists()


def test_a_name_alone_is_refused_in_the_service_too(people: People, s3_store: S3Store) -> None:
    with pytest.raises(Invalid, match="Unsupported file extension"):
        uploads.start(
            actor=people.member,
            team_slug="vision",
            model_name="notes",
            draft=draft_of("notes.txt", 20),
        )
    assert Model.objects.count() == 0
