from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import httpx
import pytest
import time_machine

from deployments.domain.states import VersionState
from deployments.gateways import artifacts
from deployments.gateways.artifacts import S3Store
from deployments.models import Model, ModelVersion
from deployments.services import uploads, verification
from deployments.services.upload_drafts import UploadDraft
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound, Unavailable
from tests.deployments.registry import onnx_models
from tests.deployments.registry.conftest import People, Upload, send_parts
from tests.deployments.registry.crashing_store import CrashingStore, Death

pytestmark = pytest.mark.django_db
MIB = 2**20


def start(people: People, *, name: str = "detector", actor: str = "member", **draft: Any) -> Any:
    fields = {"filename": "detector.onnx", "size_bytes": 20 * MIB} | draft
    return uploads.start(
        actor=people.named(actor),
        team_slug="vision",
        model_name=name,
        draft=UploadDraft(**fields),
    )


def open_uploads(store: S3Store) -> list[str]:
    answer = store.client.list_multipart_uploads(Bucket=store.bucket)
    return [row["Key"] for row in answer.get("Uploads", [])]


def assert_nothing_happened(store: S3Store) -> None:
    assert Model.objects.count() == ModelVersion.objects.count() == 0
    assert AuditEvent.objects.count() == 0
    assert open_uploads(store) == []
    assert store.list_keys("") == []


@pytest.mark.parametrize(
    ("draft", "field", "words"),
    [
        ({"name": "My_Model"}, "model", "'my-model'"),
        ({"name": "x" * 41}, "model", "shorten it to 40"),
        ({"filename": "a/b.onnx"}, "filename", "slash"),
        ({"size_bytes": 0}, "size_bytes", "empty"),
        ({"size_bytes": -1}, "size_bytes", "empty"),
        ({"size_bytes": 51 * 2**30, "filename": "a.pt"}, "size_bytes", "limit of 50 GiB"),
        ({"size_bytes": 2**31}, "size_bytes", "2 GiB"),
        ({"sha256": "ABC"}, "sha256", "64 lower-case"),
        ({"metadata": {"accuracy": 91.4}}, "metadata.accuracy", "0.914"),
        ({"metadata": {"run_url": "javascript:alert(1)"}}, "metadata.run_url", "https://"),
        ({"metadata": {"trained_at": "yesterday"}}, "metadata.trained_at", "2026-11-21"),
        ({"metadata": {"Bad Key": 1}}, "metadata.Bad Key", "no key"),
        ({"metadata": {"nested": {"a": 1}}}, "metadata.nested", "text or a number"),
    ],
)
def test_a_refused_start_names_the_field_and_leaves_nothing(
    people: People, s3_store: S3Store, draft: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        start(people, **draft)

    assert words in refusal.value.fields[field]
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


def test_a_store_that_does_not_answer_refuses_the_start_and_leaves_nothing(
    people: People, s3_store: S3Store, settings: Any
) -> None:
    with_store = settings.SLIPWAY_S3_ENDPOINT_URL
    settings.SLIPWAY_S3_ENDPOINT_URL = "http://127.0.0.1:9"

    with pytest.raises(Unavailable):
        start(people)

    settings.SLIPWAY_S3_ENDPOINT_URL = with_store
    assert_nothing_happened(s3_store)


def test_numbers_follow_each_other(people: People, s3_store: S3Store) -> None:
    assert [start(people).number for _ in range(3)] == [1, 2, 3]
    assert start(people, name="other").number == 1


def test_an_interrupted_upload_goes_on_with_what_is_missing(
    people: People, s3_store: S3Store
) -> None:
    version = start(people)
    body = b"\x08\x07" + bytes(20 * MIB - 2)
    plan = uploads.plan_of(version)
    first, _, third = uploads.sign_parts(
        actor=people.member, version_id=version.pk, numbers=[1, 2, 3], checksums={}
    )
    httpx.put(first.url, content=body[: plan.part_bytes]).raise_for_status()
    httpx.put(third.url, content=b"too short").raise_for_status()

    state = uploads.stored_parts(actor=people.member, version_id=version.pk)
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
    assert completed.s3_version_id


def test_completing_twice_is_one_completion(upload: Upload, people: People) -> None:
    version = upload(onnx_models.linear())

    again = uploads.complete(actor=people.member, version_id=version.pk)

    assert again.s3_version_id == version.s3_version_id
    assert AuditEvent.objects.filter(action="version.uploaded").count() == 1


@pytest.mark.parametrize("heals", ["the client asks again", "the sweep finds it"])
def test_death_between_the_store_and_the_row_loses_nothing(
    people: People, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch, heals: str
) -> None:
    body = onnx_models.linear()
    version = start(people, size_bytes=len(body))
    send_parts(people.member, version, body)
    store = CrashingStore(s3_store, at_call=2, is_after=True)
    with monkeypatch.context() as patched:
        patched.setattr(artifacts, "store", lambda: store)
        with pytest.raises(Death, match="complete_upload"):
            uploads.complete(actor=people.member, version_id=version.pk)

    if heals == "the client asks again":
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
    stored = s3_store.list_parts(version.key, version.upload_id)
    s3_store.complete_upload(version.key, version.upload_id, stored)
    head = s3_store.head(version.key)
    unversioned = dataclasses.replace(head, version_id="")
    monkeypatch.setattr(S3Store, "head", lambda *_: unversioned)
    ModelVersion.objects.update(next_check_at=clock.now())

    verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.FAILED
    assert "keeps no object versions" in version.state_reason


def test_an_abandoned_upload_is_aborted_at_the_store(people: People, s3_store: S3Store) -> None:
    version = start(people)
    send_parts(people.member, version, bytes(20 * MIB))

    uploads.abandon(actor=people.member, version_id=version.pk)
    verification.advance(version.pk)

    assert open_uploads(s3_store) == []
    version.refresh_from_db()
    assert (version.state, version.upload_id) == (VersionState.FAILED, "")
    assert version.state_reason == "member abandoned the upload."
    with pytest.raises(Conflict):
        uploads.sign_parts(actor=people.member, version_id=version.pk, numbers=[1], checksums={})


def test_an_upload_that_nobody_finishes_ends_after_a_day(people: People, s3_store: S3Store) -> None:
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


def test_parts_are_signed_in_small_batches_of_existing_numbers(
    people: People, s3_store: S3Store
) -> None:
    version = start(people)

    for numbers in ([0], [4], [], list(range(1, 52))):
        with pytest.raises(Invalid):
            uploads.sign_parts(
                actor=people.member, version_id=version.pk, numbers=numbers, checksums={}
            )


def test_promised_checksums_must_come_with_each_part(people: People, s3_store: S3Store) -> None:
    version = start(people, has_part_checksums=True)

    with pytest.raises(Invalid, match="promised a SHA-256"):
        uploads.sign_parts(actor=people.member, version_id=version.pk, numbers=[1], checksums={})


def test_known_bytes_are_refused_unless_wanted_again(
    verified: Upload, people: People, s3_store: S3Store
) -> None:
    known = verified(onnx_models.linear())

    with pytest.raises(Conflict, match="already version 1 of detector") as refusal:
        start(people, sha256=known.sha256)
    assert refusal.value.code == "same_bytes"
    assert open_uploads(s3_store) == []

    again = start(people, sha256=known.sha256, is_duplicate_allowed=True)
    assert again.number == 2
