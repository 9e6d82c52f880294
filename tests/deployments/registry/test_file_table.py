"""The files of a version on its page, and of two versions beside each other."""

from __future__ import annotations

import pytest
from django.test import Client

from deployments.models import ArtifactFile, ModelVersion
from deployments.registry.services import uploads
from deployments.registry.services.upload_validation import DraftFile, UploadDraft
from deployments.states import VersionState
from tests import page
from tests.deployments.uploading import People

pytestmark = pytest.mark.django_db


def stored(people: People, digests: dict[str, str]) -> ModelVersion:
    files = [DraftFile(path, 2048) for path in digests]
    draft = UploadDraft(files=files)
    version = uploads.start(
        actor=people.member, team_slug="vision", model_name="detector", draft=draft
    )
    for path, sha256 in digests.items():
        rows = ArtifactFile.objects.filter(version=version, path=path)
        rows.update(sha256=sha256, s3_version_id=f"id-of-{path}-in-the-bucket")
    ModelVersion.objects.filter(pk=version.pk).update(state=VersionState.READY)
    return version


def test_each_file_has_its_size_digest_and_version_id(people: People, client: Client) -> None:
    stored(people, {"1/model.onnx": "a" * 64, "config.pbtxt": "b" * 64})
    client.force_login(people.viewer)

    shown = page.page(client.get("/vision/models/detector/1")).part("version-files")

    assert shown.row("1/model.onnx") == {
        "": "1/model.onnx",
        "Size": "2 KiB",
        "SHA-256": "a" * 12 + "…",
        "VersionId": "id-of-1/mode…",
    }
    copied = {
        part.name: part.attributes["data-copy"]
        for part in shown.all("button")
        if "data-copy" in part.attributes
    }
    assert copied["Copy the SHA-256 of 1/model.onnx"] == "a" * 64
    address = copied["Copy the address of 1/model.onnx"]
    assert address.endswith("/1/model.onnx?versionId=id-of-1/model.onnx-in-the-bucket")


def test_many_files_are_filtered_by_path(people: People, client: Client) -> None:
    stored(people, {f"weights/{number:03}.bin": "a" * 64 for number in range(60)})
    client.force_login(people.viewer)

    shown, filtered, nothing = (
        page.page(client.get("/vision/models/detector/1", query)).part("version-files")
        for query in ({}, {"file": "S/05"}, {"file": "none"})
    )

    assert "50 of 60 shown" in shown.text
    assert len(shown.rows) == 50
    assert [row[""] for row in filtered.rows] == [f"weights/05{n}.bin" for n in range(10)]
    assert "No path contains “none”." in nothing.text


def test_comparison_shows_which_files_changed(people: People, client: Client) -> None:
    stored(people, {"same.txt": "a" * 64, "model.onnx": "b" * 64, "old.txt": "c" * 64})
    stored(people, {"same.txt": "a" * 64, "model.onnx": "d" * 64})
    client.force_login(people.viewer)

    shown = page.page(client.get("/vision/models/detector/compare?v=1&v=2"))

    rows = {row["Field"]: row for row in shown.rows if "Field" in row}
    assert rows["same.txt"]["Difference"] == "same"
    assert rows["model.onnx"]["Version 1"] == "b" * 16
    assert rows["model.onnx"]["Version 2"] == "d" * 16
    assert rows["model.onnx"]["Difference"] == "differs"
    assert (rows["old.txt"]["Version 2"], rows["old.txt"]["Difference"]) == ("—", "differs")
