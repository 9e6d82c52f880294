from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from deployments.models import ModelVersion
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import file_uploads, upload_signing, uploads, verification
from deployments.registry.services.upload_signing import PartsToSign
from deployments.states import VersionState
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound, Unavailable
from tests import plain_http
from tests.deployments import onnx_models
from tests.deployments.crashing_store import CrashingStore, Death
from tests.deployments.registry.upload_requests import (
    MIB,
    assert_nothing_happened,
    open_uploads,
    sign,
    start,
)
from tests.deployments.uploading import People, Upload, send_parts

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("draft", "field", "message"),
    [
        ({"name": "My_Model"}, "model", "'my-model'"),
        ({"name": "x" * 41}, "model", "Shorten it to 40"),
        ({"filename": "../b.onnx"}, "files[0].path", "no '..'"),
        ({"size_bytes": 0}, "files", "empty"),
        ({"size_bytes": -1}, "files[0].size_bytes", "negative"),
        ({"size_bytes": 51 * 2**30, "filename": "a.pt"}, "files[0].size_bytes", "limit of 50 GiB"),
        ({"size_bytes": 2**31}, "files[0].size_bytes", "2 GiB"),
        ({"sha256": "ABC"}, "files[0].sha256", "64 lowercase"),
        ({"metadata": {"accuracy": 91.4}}, "metadata.accuracy", "0.914"),
        ({"metadata": {"run_url": "javascript:alert(1)"}}, "metadata.run_url", "https://"),
        ({"metadata": {"trained_at": "yesterday"}}, "metadata.trained_at", "2026-11-21"),
        ({"metadata": {"Bad Key": 1}}, "metadata.Bad Key", "not a valid metric name"),
        ({"metadata": {"nested": {"a": 1}}}, "metadata.nested", "text or a number"),
    ],
)
def test_a_refused_start_names_the_field_and_leaves_nothing(
    people: People, s3_store: S3Store, draft: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        start(people, **draft)

    assert message in refusal.value.fields[field]
    assert_nothing_happened(s3_store)


@pytest.mark.parametrize(
    ("actor", "error"), [("viewer", Forbidden), ("stranger", NotFound)], ids=["viewer", "stranger"]
)
def test_who_may_not_upload_leaves_nothing(
    people: People, s3_store: S3Store, actor: str, error: type[DomainError]
) -> None:
    with pytest.raises(error):
        start(people, actor=actor)

    assert_nothing_happened(s3_store)


def test_a_store_that_does_not_answer_refuses_the_parts_and_the_upload_goes_on_later(
    people: People, s3_store: S3Store, settings: Any
) -> None:
    version = start(people)
    with_store = settings.SLIPWAY_S3_ENDPOINT_URL
    settings.SLIPWAY_S3_ENDPOINT_URL = "http://127.0.0.1:9"

    with pytest.raises(Unavailable):
        sign(people, version, [1])

    settings.SLIPWAY_S3_ENDPOINT_URL = with_store
    assert version.files.get().upload_id == ""
    assert [part.number for part in sign(people, version, [1])] == [1]


def test_numbers_follow_each_other(people: People, s3_store: S3Store) -> None:
    assert [start(people).number for _ in range(3)] == [1, 2, 3]
    assert start(people, name="other").number == 1


def test_an_interrupted_upload_goes_on_with_what_is_missing(
    people: People, s3_store: S3Store
) -> None:
    version = start(people)
    body = b"\x08\x07" + bytes(20 * MIB - 2)
    plan = file_uploads.plan_of(version.files.get())
    first, _, third = upload_signing.sign_parts(
        actor=people.member, version_id=version.pk, files=[PartsToSign("", [1, 2, 3])]
    )
    plain_http.client.put(first.url, content=body[: plan.part_bytes]).raise_for_status()
    plain_http.client.put(third.url, content=b"too short").raise_for_status()

    state = uploads.stored_parts(actor=people.member, version_id=version.pk, path="")
    assert list(state.missing) == [2, 3]
    with pytest.raises(Conflict, match=r"2 of 3 parts .* 2, 3") as refusal:
        uploads.complete(actor=people.member, version_id=version.pk)
    assert refusal.value.code == "parts_missing"
    version.refresh_from_db()
    assert version.state == VersionState.UPLOADING

    send_parts(people.member, version, body)
    completed = uploads.complete(actor=people.member, version_id=version.pk)
    assert completed.state == VersionState.VERIFYING
    assert completed.size_bytes == 20 * MIB
    assert completed.files.get().s3_version_id


def test_completing_twice_is_one_completion(upload: Upload, people: People) -> None:
    version = upload(onnx_models.linear())

    again = uploads.complete(actor=people.member, version_id=version.pk)

    assert again.files.get().s3_version_id == version.files.get().s3_version_id != ""
    assert AuditEvent.objects.filter(action="version.uploaded").count() == 1


@pytest.mark.parametrize("recovery", ["the client retries", "the sweep"])
def test_death_between_the_store_and_the_row_loses_nothing(
    people: People, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch, recovery: str
) -> None:
    body = onnx_models.linear()
    version = start(people, size_bytes=len(body))
    send_parts(people.member, version, body)
    store = CrashingStore(s3_store, at_call=2, is_after=True)
    with monkeypatch.context() as patched:
        patched.setattr(object_store, "store", lambda: store)
        with pytest.raises(Death, match="complete_upload"):
            uploads.complete(actor=people.member, version_id=version.pk)

    if recovery == "the client retries":
        uploads.complete(actor=people.member, version_id=version.pk)
    else:
        with time_machine.travel(clock.now() + timedelta(seconds=31)):
            assert verification.due() == [version.pk]
            verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.VERIFYING
    verification.advance(version.pk)
    version.refresh_from_db()
    assert version.state == VersionState.READY


def test_a_version_is_never_pinned_without_a_version_id(
    people: People, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = start(people, size_bytes=4)
    send_parts(people.member, version, b"body")
    file = version.files.get()
    stored = s3_store.list_parts(file.key, file.upload_id)
    s3_store.complete_upload(file.key, file.upload_id, stored)
    head = s3_store.head(file.key)
    unversioned = dataclasses.replace(head, version_id="")
    monkeypatch.setattr(S3Store, "head", lambda *_: unversioned)
    ModelVersion.objects.update(next_check_at=clock.now())

    verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.FAILED
    assert "has versioning disabled" in version.state_reason


def test_an_abandoned_upload_is_aborted_at_the_store(people: People, s3_store: S3Store) -> None:
    version = start(people)
    send_parts(people.member, version, bytes(20 * MIB))

    uploads.abandon(actor=people.member, version_id=version.pk)
    verification.advance(version.pk)

    assert open_uploads(s3_store) == []
    version.refresh_from_db()
    assert (version.state, version.files.get().upload_id) == (VersionState.FAILED, "")
    assert version.state_reason == "member canceled the upload."
    with pytest.raises(Conflict):
        upload_signing.sign_parts(
            actor=people.member, version_id=version.pk, files=[PartsToSign("", [1])]
        )


def test_an_unfinished_upload_ends_after_a_day(people: People, s3_store: S3Store) -> None:
    version = start(people)

    with time_machine.travel(clock.now() + timedelta(hours=23)):
        assert verification.due() == []
    with time_machine.travel(clock.now() + timedelta(hours=25)):
        verification.advance(version.pk)
        verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.FAILED
    assert "within 24 hours" in version.state_reason
    assert open_uploads(s3_store) == []


def test_two_that_open_a_file_at_once_share_one_upload(
    people: People, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = start(people)
    create = s3_store.create_upload

    def lose_the_race(key: str, *, with_part_checksums: bool) -> str:
        monkeypatch.undo()
        sign(people, version, [1])
        return create(key, with_part_checksums=with_part_checksums)

    monkeypatch.setattr(s3_store, "create_upload", lose_the_race)

    (part,) = sign(people, version, [2])

    assert len(open_uploads(s3_store)) == 1
    assert f"uploadId={version.files.get().upload_id}" in part.url


def test_an_upload_that_the_store_dropped_is_sent_again(people: People, s3_store: S3Store) -> None:
    body = onnx_models.linear()
    version = start(people, size_bytes=len(body))
    send_parts(people.member, version, body)
    file = version.files.get()
    s3_store.abort_upload(file.key, file.upload_id)

    with pytest.raises(Conflict, match="1 of 1 parts are missing") as refusal:
        uploads.complete(actor=people.member, version_id=version.pk)

    assert refusal.value.code == "parts_missing"
    send_parts(people.member, version, body)
    completed = uploads.complete(actor=people.member, version_id=version.pk)
    assert completed.state == VersionState.VERIFYING


def test_an_upload_that_makes_progress_does_not_expire(people: People, s3_store: S3Store) -> None:
    version = start(people)

    with time_machine.travel(clock.now() + timedelta(hours=23)):
        sign(people, version, [1])
    with time_machine.travel(clock.now() + timedelta(hours=46)):
        verification.advance(version.pk)
        version.refresh_from_db()
        assert version.state == VersionState.UPLOADING
    with time_machine.travel(clock.now() + timedelta(hours=48)):
        verification.advance(version.pk)
        version.refresh_from_db()
        assert version.state == VersionState.FAILED
