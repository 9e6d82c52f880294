"""A store that joins the parts of a large file for longer than a request may take."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import time_machine
from botocore.exceptions import EndpointConnectionError
from django.test import Client

from deployments.models import ModelVersion
from deployments.registry.gateways import multipart_completion, object_store
from deployments.registry.gateways.object_store import (
    ObjectMissing,
    PartsRefused,
    S3Store,
    StillAssembling,
    StoreUnreachable,
)
from deployments.registry.services import file_uploads, uploads, verification
from deployments.states import VersionState
from portal.core import clock
from portal.core.errors import Conflict, Unavailable
from tests.deployments import onnx_models
from tests.deployments.registry import slow_store
from tests.deployments.registry.slow_store import Gate
from tests.deployments.registry.upload_requests import start
from tests.deployments.uploading import People, send_parts
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(people: People, s3_store: S3Store) -> ModelVersion:
    """All parts are at the store; nothing is assembled."""
    body = onnx_models.linear()
    version: ModelVersion = start(people, size_bytes=len(body))
    send_parts(people.member, version, body)
    return version


@pytest.fixture
def gate(s3_store: S3Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    with slow_store.before(s3_store) as (gate, slow):
        monkeypatch.setattr(object_store, "store", lambda: slow)
        yield gate


def complete(people: People, version: ModelVersion) -> ModelVersion:
    return uploads.complete(actor=people.member, version_id=version.pk)


@pytest.mark.parametrize("finisher", ["the page", "the sweep"])
def test_a_slow_completion_is_sent_once_and_its_object_is_found(
    people: People, s3_store: S3Store, sent: ModelVersion, gate: Gate, finisher: str
) -> None:
    for _ in range(3):
        with pytest.raises(Unavailable) as refusal:
            complete(people, sent)
        assert refusal.value.code == "assembling"
    state = uploads.stored_parts(actor=people.member, version_id=sent.pk, path="")
    assert (list(state.missing), state.is_assembled) == ([], False)
    with time_machine.travel(clock.now() + timedelta(seconds=31)):
        verification.advance(sent.pk)
        sent.refresh_from_db()
        assert sent.state == VersionState.UPLOADING
        assert sent.next_check_at is not None
        assert sent.next_check_at - clock.now() < timedelta(seconds=31)
    assert len(gate.requests) == 1

    gate.opened.set()
    wait_for("the assembled object", lambda: gate.done == [200])
    if finisher == "the page":
        complete(people, sent)
    else:
        verification.advance(sent.pk)

    sent.refresh_from_db()
    file = sent.files.get()
    assert sent.state == VersionState.VERIFYING
    assert file.s3_version_id == s3_store.head(file.key).version_id != ""
    assert (file.upload_id, file.assembly_deadline_at) == ("", None)
    assert len(gate.requests) == 1


def test_a_request_that_was_lost_is_sent_again_only_after_its_time(
    people: People, sent: ModelVersion, gate: Gate
) -> None:
    gate.is_losing = True
    with pytest.raises(Unavailable):
        complete(people, sent)
    gate.is_losing = False
    gate.opened.set()
    with time_machine.travel(clock.now() + timedelta(seconds=59)), pytest.raises(Unavailable):
        complete(people, sent)
    assert len(gate.requests) == 1

    with time_machine.travel(clock.now() + timedelta(seconds=61)):
        assert complete(people, sent).state == VersionState.VERIFYING
    assert len(gate.requests) == 2


@pytest.mark.parametrize(
    ("failure", "error", "code"),
    [
        (PartsRefused("InvalidPart"), Conflict, "parts_refused"),
        (StoreUnreachable("connection refused"), Unavailable, "store_unavailable"),
    ],
    ids=["parts", "unreachable"],
)
def test_a_store_that_answered_is_tried_again_at_once(
    people: People,
    sent: ModelVersion,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
    error: type[Exception],
    code: str,
) -> None:
    def refuse(*_: object) -> str:
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(S3Store, "complete_upload", refuse)
        with pytest.raises(error) as refusal:
            complete(people, sent)
    assert refusal.value.code == code  # type: ignore[attr-defined]
    assert sent.files.get().assembly_deadline_at is None

    assert complete(people, sent).state == VersionState.VERIFYING


def test_of_two_requests_at_once_one_assembles(
    people: People, sent: ModelVersion, gate: Gate
) -> None:
    one, other = sent.files.get(), sent.files.get()

    with pytest.raises(Unavailable):
        file_uploads.assemble(one)
    with pytest.raises(Unavailable, match=r"assembling detector\.onnx"):
        file_uploads.assemble(other)

    assert len(gate.requests) == 1


def test_what_appears_after_an_upload_was_canceled_is_deleted(
    people: People, s3_store: S3Store, sent: ModelVersion, gate: Gate
) -> None:
    with pytest.raises(Unavailable):
        complete(people, sent)
    uploads.abandon(actor=people.member, version_id=sent.pk)
    verification.advance(sent.pk)
    file = sent.files.get()
    s3_store.put(file.key, b"assembled after all", content_type="application/octet-stream")
    sent.refresh_from_db()
    assert sent.next_check_at == file.assembly_deadline_at is not None

    with time_machine.travel(clock.now() + timedelta(seconds=61)):
        assert verification.due() == [sent.pk]
        verification.advance(sent.pk)

    sent.refresh_from_db()
    assert (sent.state, sent.next_check_at) == (VersionState.FAILED, None)
    assert s3_store.list_keys("") == []


def test_the_api_says_when_to_ask_again(people: People, sent: ModelVersion, gate: Gate) -> None:
    client = Client()
    client.force_login(people.member)

    answer = client.post(f"/api/v1/versions/{sent.pk}/complete", content_type="application/json")

    assert (answer.status_code, answer.json()["code"]) == (503, "assembling")
    assert answer.headers["Retry-After"] == "5"


def test_the_time_to_assemble_follows_from_the_size() -> None:
    seconds = [
        multipart_completion.assemble_within(size).total_seconds()
        for size in (0, 5 * 2**30, 50 * 2**30)
    ]

    assert seconds == [60, 60 + 256, 60 + 2560]


def test_a_worker_waits_for_a_newer_object_than_it_knew() -> None:
    newest = iter(["old", "old", "", "new"])
    pauses: list[float] = []

    def complete_upload() -> str:
        raise StillAssembling("key")

    def newest_version() -> str:
        version = next(newest)
        if not version:
            raise ObjectMissing("key")
        return version

    version = multipart_completion.wait_for(
        complete_upload, newest_version, size_bytes=1, pause=pauses.append
    )

    assert (version, len(pauses)) == ("new", 2)


def test_a_worker_stops_waiting_when_the_time_is_over() -> None:
    pauses: list[float] = []

    def complete_upload() -> str:
        raise StillAssembling("key")

    with pytest.raises(StillAssembling):
        multipart_completion.wait_for(
            complete_upload, lambda: "old", size_bytes=5 * 2**30, pause=pauses.append
        )

    assert sum(pauses) == 316


def test_a_request_that_never_left_is_no_completion_at_work() -> None:
    class Unreachable:
        def complete_multipart_upload(self, **_: object) -> None:
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1:9")

    with pytest.raises(StoreUnreachable) as failure:
        multipart_completion.complete(Unreachable(), "models", "key", "id", [])

    assert not isinstance(failure.value, StillAssembling)
