"""Uploads that are cut, refused or dropped on their way, and go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from deployments.models import ArtifactFile, ModelVersion
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import file_uploads, uploads
from portal.core.errors import Unavailable
from slipway_client import (
    ConnectionFailed,
    Failed,
)
from tests.client.pushing import Recorded, Store, client_with, model, stored_bytes
from tests.deployments.uploading import People

__all__ = ["model"]


def test_an_interrupted_upload_is_resumed_with_the_parts_that_are_missing(
    people: People, s3_store: S3Store, model: Path
) -> None:
    def interrupt(request: httpx.Request, number: int) -> httpx.Response | None:
        if number == 3:
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        client_with(people, Store(interrupt)).push(model, "vision/detector", parallel=1)
    store, progress = Store(), Recorded()
    version = client_with(people, store).push(
        model, "vision/detector", wait=False, progress=progress
    )

    row = ModelVersion.objects.get()
    assert (version.id, version.state) == (row.pk, "verifying")
    assert progress.notes[0] == "Resuming vision/detector:1."
    assert len(store.sent) == 1
    assert progress.bytes["send"] == progress.totals["send"]
    assert stored_bytes(s3_store, row, "detector.onnx") == model.read_bytes()


def test_other_files_do_not_resume_an_upload(
    people: People, s3_store: S3Store, model: Path
) -> None:
    def cut(request: httpx.Request, number: int) -> httpx.Response | None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client_with(people, Store(cut)).push(model, "vision/detector")
    content = bytearray(model.read_bytes())
    content[-1] ^= 1
    model.write_bytes(content)
    version = client_with(people, Store()).push(model, "vision/detector", wait=False)

    assert version.number == 2
    assert ModelVersion.objects.get(number=1).state == "uploading"


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("the laptop slept"),
        httpx.ReadTimeout("no answer"),
        httpx.Response(503, text="<Error><Code>SlowDown</Code></Error>"),
        httpx.Response(500, text="<Error><Code>InternalError</Code></Error>"),
        httpx.Response(400, text="<Error><Code>BadDigest</Code></Error>"),
        httpx.Response(403, text="<Error><Code>AccessDenied</Code></Error>"),
    ],
    ids=["connect", "timeout", "slow-down", "internal", "digest", "expired-url"],
)
def test_a_part_that_fails_is_sent_again(
    failure: Any, people: People, s3_store: S3Store, model: Path
) -> None:
    def fail(request: httpx.Request, number: int) -> httpx.Response | None:
        if number != 2:
            return None
        request.read()
        if isinstance(failure, Exception):
            raise failure
        return failure

    store, progress = Store(fail), Recorded()
    client = client_with(people, store)
    version = client.push(model, "vision/detector", wait=False, progress=progress)

    assert version.state == "verifying"
    assert len(store.sent) == 4
    assert progress.bytes["send"] == progress.totals["send"]
    row = ModelVersion.objects.get()
    assert stored_bytes(s3_store, row, "detector.onnx") == model.read_bytes()


def test_a_part_that_always_fails_ends_the_upload_which_can_be_resumed(
    people: People, s3_store: S3Store, model: Path
) -> None:
    def refuse(request: httpx.Request, number: int) -> httpx.Response | None:
        raise httpx.ConnectError("no route")

    with pytest.raises(ConnectionFailed, match=r"no route. Push again to resume"):
        client_with(people, Store(refuse)).push(model, "vision/detector", parallel=2)
    assert ModelVersion.objects.get().state == "uploading"
    version = client_with(people, Store()).push(model, "vision/detector", wait=False)

    assert version.id == ModelVersion.objects.get().pk


def test_an_upload_that_the_store_dropped_is_sent_again_as_a_whole(
    people: People, s3_store: S3Store, model: Path
) -> None:
    def drop(request: httpx.Request, number: int) -> httpx.Response | None:
        if number == 3:
            _, bucket, key = request.url.path.split("/", 2)
            s3_store.client.abort_multipart_upload(
                Bucket=bucket, Key=key, UploadId=request.url.params["uploadId"]
            )
            request.read()
            # As S3 answers; moto has an internal error instead.
            return httpx.Response(404, text="<Error><Code>NoSuchUpload</Code></Error>")
        return None

    store = Store(drop)
    version = client_with(people, store).push(model, "vision/detector", wait=False, parallel=1)

    row = ModelVersion.objects.get()
    assert (version.state, len(store.sent)) == ("verifying", 6)
    assert stored_bytes(s3_store, row, "detector.onnx") == model.read_bytes()


def test_a_store_that_assembles_for_minutes_is_waited_for_and_nothing_is_sent_again(
    people: People, s3_store: S3Store, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assemble, asked, pauses = file_uploads.assemble, [0], list[float]()

    def assemble_late(file: ArtifactFile) -> None:
        asked[0] += 1
        if asked[0] <= 40:
            raise Unavailable("At work.", code="assembling", retry_after_seconds=5)
        assemble(file)

    monkeypatch.setattr(file_uploads, "assemble", assemble_late)
    store = Store()
    client = client_with(people, store)
    monkeypatch.setattr(client._connection, "sleep", pauses.append)
    version = client.push(model, "vision/detector", wait=False)

    assert (version.state, len(store.sent), asked[0]) == ("verifying", 3, 41)
    assert min(pauses) >= 5


def test_an_upload_that_was_cancelled_meanwhile_says_so(
    people: People, s3_store: S3Store, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_with(people, Store())
    post = client._connection.post
    signed: list[str] = []

    def cancel_before_the_signature(path: str, body: Any = None) -> Any:
        if path.endswith("/parts"):
            signed.append(path)
            if len(signed) == 1:
                uploads.abandon(actor=people.member, version_id=ModelVersion.objects.get().pk)
        return post(path, body)

    monkeypatch.setattr(client._connection, "post", cancel_before_the_signature)
    with pytest.raises(Failed, match=r"vision/detector:1 is failed: .*Push again"):
        client.push(model, "vision/detector", parallel=1)
