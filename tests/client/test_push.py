"""Uploads with the client, on the real application and a real S3 server."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from deployments.models import ModelVersion
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import upload_signing, verification
from slipway_client import (
    Client,
    InvalidInput,
    InvalidRequest,
    TokenRefused,
)
from slipway_client.uploads.local_files import FileChanged
from tests.client.conftest import PORTAL, portal_transport
from tests.client.pushing import Recorded, Store, client_with, model, stored_bytes
from tests.deployments.uploading import People

__all__ = ["model"]


def test_a_file_becomes_a_ready_version(
    people: People, s3_store: S3Store, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, progress = Store(), Recorded()
    client = client_with(people, store)
    read = client.versions.get

    def read_after_the_worker(version: int | str) -> Any:
        verification.advance(ModelVersion.objects.get().pk)
        return read(version)

    monkeypatch.setattr(client.versions, "get", read_after_the_worker)
    version = client.push(model, "vision/detector", metadata={"accuracy": 0.91}, progress=progress)

    row = ModelVersion.objects.get()
    assert (version.state, version.id, str(version)) == ("ready", row.pk, "vision/detector:1")
    assert version.sha256 == hashlib.sha256(model.read_bytes()).hexdigest()
    assert version.metadata == {"metrics": {"accuracy": 0.91}}
    assert stored_bytes(s3_store, row, "detector.onnx") == model.read_bytes()
    assert len(store.sent) == 3
    size = model.stat().st_size
    assert progress.totals == progress.bytes == {"digest": size, "send": size}
    assert progress.notes[-1] == "ready"
    assert row.has_part_checksums


def test_a_folder_is_sent_with_bounded_parallelism(
    people: People, s3_store: S3Store, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    (folder / "1").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("not sent")
    for clutter in (".DS_Store", "._model.onnx", "Thumbs.db", "desktop.ini"):
        (folder / clutter).write_text("not sent")
    for number in range(130):
        (folder / "1" / f"weights-{number:03}.bin").write_bytes(bytes([number]) * (number + 1))
    (folder / "empty.txt").touch()
    (folder / "linked.bin").symlink_to(folder / "1" / "weights-007.bin")
    store, progress = Store(), Recorded()

    version = client_with(people, store).push(
        folder, "vision/detector", wait=False, parallel=3, progress=progress
    )

    row = ModelVersion.objects.get()
    paths = sorted(row.files.values_list("path", flat=True))
    assert version.state == row.state == "verifying"
    assert len(paths) == len(store.sent) == 132
    assert (paths[0], paths[-2:]) == ("1/weights-000.bin", ["empty.txt", "linked.bin"])
    assert all(row.files.values_list("s3_version_id", flat=True))
    assert stored_bytes(s3_store, row, "linked.bin") == bytes([7]) * 8
    assert store.most_at_once <= 3
    assert progress.bytes["send"] == progress.totals["send"] == row.declared_size_bytes


def test_small_files_are_signed_together(
    people: People, s3_store: S3Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model" / "1").mkdir(parents=True)
    for number in range(120):
        path = tmp_path / "model" / "1" / f"weights-{number:03}.bin"
        path.write_bytes(bytes([number]) * 9)
    signed: list[int] = []
    sign = upload_signing.sign_parts

    def counted(**request: Any) -> Any:
        signed.append(len(request["files"]))
        return sign(**request)

    monkeypatch.setattr(upload_signing, "sign_parts", counted)
    client_with(people, Store()).push(tmp_path / "model", "vision/detector", wait=False)

    row = ModelVersion.objects.get()
    assert sum(signed) == row.files.exclude(s3_version_id="").count() == 120
    assert len(signed) <= 20
    assert max(signed) <= 40
    assert stored_bytes(s3_store, row, "1/weights-007.bin") == bytes([7]) * 9


def test_these_exact_files_are_a_version_already(
    people: People, s3_store: S3Store, model: Path
) -> None:
    first = client_with(people, Store()).push(model, "vision/detector", wait=False)
    verification.advance(first.id)
    store, progress = Store(), Recorded()

    again = client_with(people, store).push(model, "vision/detector", progress=progress)
    other = client_with(people, Store()).push(model, "vision/other", wait=False)
    anyway = client_with(people, Store()).push(
        model, "vision/detector", wait=False, allow_duplicate=True
    )

    assert (again.id, again.state, store.sent) == (first.id, "ready", [])
    assert progress.notes[0] == (
        "These exact files are vision/detector:1 (ready). Nothing was sent."
    )
    assert (other.number, anyway.number) == (1, 2)


def test_what_cannot_be_a_model_is_refused_before_a_byte_is_sent(
    people: People, s3_store: S3Store, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.onnx"
    notes.write_text("these bytes are no model at all")
    store = Store()

    with pytest.raises(InvalidRequest) as refusal:
        client_with(people, store).push(notes, "vision/detector")
    with pytest.raises(InvalidInput, match="nowhere cannot be read: No such file"):
        client_with(people, store).push(tmp_path / "nowhere", "vision/detector")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="has no files"):
        client_with(people, store).push(tmp_path / "empty", "vision/detector")

    assert "files" in refusal.value.fields
    assert (store.sent, ModelVersion.objects.count()) == ([], 0)


def test_a_file_that_is_written_to_meanwhile_is_not_sent(
    people: People, s3_store: S3Store, model: Path
) -> None:
    def write(request: httpx.Request, number: int) -> httpx.Response | None:
        if number == 1:
            with model.open("ab") as file:
                file.write(b"more")
        return None

    with pytest.raises(FileChanged, match=r"detector.onnx has changed"):
        client_with(people, Store(write)).push(model, "vision/detector", parallel=1)

    assert ModelVersion.objects.get().state == "uploading"


def test_the_token_never_goes_to_the_object_store(
    people: People, s3_store: S3Store, model: Path
) -> None:
    headers: list[httpx.Headers] = []

    def record(request: httpx.Request, number: int) -> httpx.Response | None:
        headers.append(request.headers)
        return None

    client_with(people, Store(record)).push(model, "vision/detector", wait=False)

    assert len(headers) == 3
    assert all("authorization" not in sent for sent in headers)
    with pytest.raises(TokenRefused):
        Client(PORTAL, "slp_wrong", transport=portal_transport()).push(model, "vision/detector")
