"""A ready version that is verified again with a new declaration loses nothing when that does not
end well.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client

from deployments.manifests.services import serving_bytes
from deployments.models import ModelVersion
from deployments.registry.gateways import object_store, sandbox
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.gateways.sandbox import DeathCause, Died
from deployments.registry.services import declarations, transitions, upload_endings, verification
from deployments.registry.services.examination import version_examination
from deployments.registry.services.examination.checklist import LEASE_SECONDS
from deployments.states import VersionState
from portal.audit.models import AuditEvent
from portal.core import clock, leases
from portal.core.errors import Conflict
from tests.deployments import onnx_models
from tests.deployments.uploading import People, Upload

pytestmark = pytest.mark.django_db
# All that a version is; the rest says who works on it.
_WORK = {"state_reason", "next_check_at", "lease_until", "lease_token", "check_failures"}
_AS_BEFORE = "The version is as it was before, with its former declaration."
_SMALLER: dict[str, Any] = {"supports_batching": None, "max_batch_size": 4, "largest_inputs": {}}


def facts_of(version: ModelVersion) -> dict[str, Any]:
    return {
        field.attname: getattr(version, field.attname)
        for field in ModelVersion._meta.concrete_fields
        if field.name not in _WORK
    }


def declare_smaller(people: People, version: ModelVersion) -> None:
    declarations.declare(actor=people.member, version_id=version.pk, **_SMALLER)
    again = ModelVersion.objects.get(pk=version.pk)
    assert (again.state, again.declared["max_batch_size"]) == (VersionState.VERIFYING, 4)


def assert_as_before(version: ModelVersion, before: dict[str, Any], reason: str) -> None:
    version.refresh_from_db()
    assert facts_of(version) == before
    assert version.state == VersionState.READY
    assert version.state_reason == reason
    assert (version.lease_token, version.deadline_at, version.next_check_at) == ("", None, None)
    # What is recorded is what serving would read.
    store = object_store.store()
    assert serving_bytes.compare_version(version, serving_bytes.Bucket()) == []
    file = version.files.get()
    assert store.head(file.key, file.s3_version_id).size_bytes == version.size_bytes


def test_stopping_it_on_the_page_keeps_the_version(
    people: People, verified: Upload, client: Client
) -> None:
    version = verified(onnx_models.linear())
    before = facts_of(version)
    declare_smaller(people, version)
    client.force_login(people.member)
    page = client.get("/vision/models/detector/1").content.decode()
    assert "The version keeps its previous declaration." in page
    assert "The version is marked as failed and its file is deleted." not in page

    assert client.post("/vision/models/detector/1/stop").status_code == 302

    reason = f"member stopped the verification with a new declaration. {_AS_BEFORE}"
    assert_as_before(version, before, reason)
    assert reason in client.get("/vision/models/detector/1").content.decode()
    event = AuditEvent.objects.get(action="version.stopped")
    assert (event.actor_name, event.object_label) == ("member", "detector:1")
    assert event.before == {"state": "verifying"}
    assert (event.after["state"], event.after["declared"]) == ("ready", before["declared"])
    verification.advance(version.pk)
    assert_as_before(version, before, reason)


def test_stopping_it_by_rest_keeps_the_version(
    people: People, verified: Upload, client: Client
) -> None:
    version = verified(onnx_models.linear())
    before = facts_of(version)
    declare_smaller(people, version)
    client.force_login(people.member)

    answer = client.post(f"/api/v1/versions/{version.pk}/stop", content_type="application/json")

    assert (answer.status_code, answer.json()["state"]) == (200, "ready")
    assert_as_before(
        version, before, f"member stopped the verification with a new declaration. {_AS_BEFORE}"
    )
    assert (
        client.post(
            f"/api/v1/versions/{version.pk}/stop", content_type="application/json"
        ).status_code
        == 409
    )


def test_the_second_death_of_the_reader_keeps_the_version(
    people: People, verified: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = verified(onnx_models.linear())
    before = facts_of(version)
    declare_smaller(people, version)
    died = Died(DeathCause.TIME, "it took longer than 1 seconds")
    monkeypatch.setattr(sandbox, "run", lambda *args, **options: died)

    verification.advance(version.pk)
    version.refresh_from_db()
    assert (version.state, version.examination_deaths) == (VersionState.VERIFYING, 1)
    with time_machine.travel(clock.now() + timedelta(seconds=10)):
        verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state_reason.startswith(
        "Verifying it with a new declaration failed: Reading the file failed twice: "
        "it took longer than 1 seconds. "
    )
    assert_as_before(version, before, version.state_reason)
    event = AuditEvent.objects.get(action="version.kept")
    assert (event.actor_name, event.reason) == ("slipway", version.state_reason)
    assert not AuditEvent.objects.filter(action="version.failed").exists()


def test_a_death_of_its_first_verification_does_not_count(
    people: People, verified: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = verified(onnx_models.linear())
    ModelVersion.objects.filter(pk=version.pk).update(examination_deaths=1)
    declare_smaller(people, version)
    died = Died(DeathCause.CRASH, "the process that read it gave no answer")
    monkeypatch.setattr(sandbox, "run", lambda *args, **options: died)

    verification.advance(version.pk)

    version.refresh_from_db()
    assert (version.state, version.examination_deaths) == (VersionState.VERIFYING, 1)


def test_its_deadline_keeps_the_version(people: People, verified: Upload) -> None:
    version = verified(onnx_models.linear())
    before = facts_of(version)
    declare_smaller(people, version)

    with time_machine.travel(clock.now() + transitions.VERIFY_WITHIN):
        assert version.pk in leases.due(ModelVersion)
        verification.advance(version.pk)

    assert_as_before(
        version,
        before,
        "Verifying it with a new declaration failed: Verification did not finish within 60 minutes. "
        "Declare it again; if it fails again, ask a platform admin to check the worker logs. "
        + _AS_BEFORE,
    )


def test_what_examining_raises_keeps_the_version(
    people: People, verified: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = verified(onnx_models.linear())
    before = facts_of(version)
    declare_smaller(people, version)

    def fail(*args: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(version_examination, "examine", fail)

    verification.advance(version.pk)

    version.refresh_from_db()
    assert "The file could not be read" in version.state_reason
    assert_as_before(version, before, version.state_reason)


class _Killed(BaseException):
    pass


def test_a_worker_that_dies_after_it_laid_out_leaves_what_serving_reads(
    people: People, verified: Upload, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new layout is complete, the verdict is not written: the deadline or a person ends it."""
    version = verified(onnx_models.linear())
    before = facts_of(version)
    declare_smaller(people, version)

    def die(**fields: Any) -> None:
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr(transitions, "to_ready", die)
        patched.setattr(leases, "back_off", lambda *args, **kwargs: True)
        with pytest.raises(_Killed):
            verification.advance(version.pk)
    prefixes = {key.split("/")[4] for key in s3_store.list_keys("repositories/")}
    assert len(prefixes) == 2

    with time_machine.travel(clock.now() + transitions.VERIFY_WITHIN):
        verification.advance(version.pk)

    version.refresh_from_db()
    assert_as_before(version, before, version.state_reason)


def test_a_worker_that_dies_once_it_is_kept_costs_nothing(
    people: People, verified: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = verified(onnx_models.linear())
    before = facts_of(version)
    declare_smaller(people, version)

    def die(*args: object, **options: Any) -> None:
        raise _Killed

    with monkeypatch.context() as patched, time_machine.travel(clock.now() + timedelta(hours=2)):
        patched.setattr(leases, "release", die)
        patched.setattr(leases, "back_off", lambda *args, **kwargs: True)
        with pytest.raises(_Killed):
            verification.advance(version.pk)

    version.refresh_from_db()
    assert_as_before(version, before, version.state_reason)
    assert leases.due(ModelVersion) == []


def test_a_worker_of_the_stopped_declaration_writes_nothing_over_the_next_one(
    people: People, verified: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = verified(onnx_models.linear())
    declare_smaller(people, version)
    real = transitions.to_ready

    def stop_and_declare_another(**fields: Any) -> None:
        upload_endings.stop_verification(actor=people.member, version_id=version.pk)
        declarations.declare(
            actor=people.member, version_id=version.pk, **{**_SMALLER, "max_batch_size": 8}
        )
        real(**fields)

    with monkeypatch.context() as patched:
        patched.setattr(transitions, "to_ready", stop_and_declare_another)
        verification.advance(version.pk)

    version.refresh_from_db()
    assert (version.state, version.declared["max_batch_size"]) == (VersionState.VERIFYING, 8)
    assert version.signature["max_batch_size"] == 32
    with time_machine.travel(clock.now() + timedelta(seconds=LEASE_SECONDS + 1)):
        verification.advance(version.pk)
    version.refresh_from_db()
    assert (version.state, version.signature["max_batch_size"]) == (VersionState.READY, 8)
    assert (version.former, version.state_reason) == ({}, "")
    assert "max_batch_size: 8\n" in version.config_pbtxt
    assert serving_bytes.compare_version(version, serving_bytes.Bucket()) == []


def test_what_was_ready_before_cannot_fail_by_a_page_that_saw_it_earlier(
    people: People, upload: Upload
) -> None:
    """Between the read and the write it became ready, and was declared again."""
    version = upload(onnx_models.linear())
    verification.advance(version.pk)
    declare_smaller(people, version)

    with pytest.raises(Conflict):
        transitions.to_failed(version=version, reason="stopped", actor=people.member)

    assert ModelVersion.objects.get().state == VersionState.VERIFYING


def test_a_first_verification_has_nothing_to_return_to(people: People, upload: Upload) -> None:
    version = upload(onnx_models.linear())

    with pytest.raises(Conflict):
        transitions.to_ready_again(version=version, reason="stopped", actor=people.member)

    assert ModelVersion.objects.get().state == VersionState.VERIFYING
