"""What bounds the uploads of a team: known bytes, open uploads and their size."""

from typing import Any

import pytest

from deployments.models import ArtifactFile, Model, ModelVersion
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import upload_validation, uploads
from deployments.registry.services.upload_validation import UploadDraft
from portal.core.errors import Conflict
from tests.deployments import onnx_models
from tests.deployments.registry.upload_requests import MIB, open_uploads, start
from tests.deployments.uploading import People, Upload

pytestmark = pytest.mark.django_db


def test_known_bytes_are_refused_unless_requested_again(
    verified: Upload, people: People, s3_store: S3Store
) -> None:
    known = verified(onnx_models.linear())

    with pytest.raises(Conflict, match="already version 1 of detector") as refusal:
        start(people, sha256=known.sha256)
    assert refusal.value.code == "same_bytes"
    assert open_uploads(s3_store) == []

    again = start(people, sha256=known.sha256, is_duplicate_allowed=True)
    assert again.number == 2


def test_team_has_so_many_open_uploads_at_a_time(
    people: People, s3_store: S3Store, settings: Any
) -> None:
    settings.SLIPWAY_TEAM_OPEN_UPLOADS = 2
    first = start(people)
    start(people, name="other")

    with pytest.raises(Conflict, match="2 open uploads, the limit") as refusal:
        start(people, name="third")

    assert refusal.value.code == "too_many_uploads"
    assert ModelVersion.objects.count() == ArtifactFile.objects.count() == 2
    assert not Model.objects.filter(name="third").exists()
    uploads.abandon(actor=people.named("member"), version_id=first.pk)
    assert start(people, name="third").number == 1


def test_team_has_so_many_bytes(people: People, s3_store: S3Store, settings: Any) -> None:
    settings.SLIPWAY_TEAM_STORAGE_BYTES = 40 * MIB
    start(people)

    with pytest.raises(Conflict, match="Team vision uses") as refusal:
        start(people, name="too-large", size_bytes=20 * MIB + 1)

    assert refusal.value.code == "storage_full"
    assert ModelVersion.objects.count() == ArtifactFile.objects.count() == 1
    assert start(people, name="fits", size_bytes=20 * MIB).number == 1


def test_room_that_was_taken_meanwhile_is_refused_and_leaves_no_upload(
    people: People, s3_store: S3Store, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SLIPWAY_TEAM_OPEN_UPLOADS = 1

    def lose_the_race(draft: UploadDraft) -> dict[str, Any]:
        monkeypatch.undo()
        settings.SLIPWAY_TEAM_OPEN_UPLOADS = 1
        start(people, name="faster")
        return {}

    monkeypatch.setattr(upload_validation, "read_declared", lose_the_race)

    with pytest.raises(Conflict) as refusal:
        start(people)

    assert refusal.value.code == "too_many_uploads"
    assert [row.model.name for row in ModelVersion.objects.select_related("model")] == ["faster"]
    assert ArtifactFile.objects.count() == 1
