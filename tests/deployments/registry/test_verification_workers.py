"""Workers that verify a version: one at a time, and any of them may die."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from deployments.models import ModelVersion
from deployments.registry.gateways import object_store, sandbox
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import verification
from deployments.registry.services.examination.checklist import LEASE_SECONDS
from deployments.states import VersionState
from portal.audit.models import AuditEvent
from portal.core import clock, leases
from tests.deployments import onnx_models
from tests.deployments.crashing_store import CrashingStore, Death, worth_dying_at
from tests.deployments.uploading import Upload, versions_in

pytestmark = pytest.mark.django_db


def test_a_worker_that_holds_the_row_keeps_others_out(upload: Upload, s3_store: S3Store) -> None:
    version = upload(onnx_models.linear())
    assert leases.claim(ModelVersion, version.pk) is not None

    verification.advance(version.pk)

    assert ModelVersion.objects.get().state == VersionState.VERIFYING


def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that differ in one number are read by a process of their own only once."""
    answers: dict[str, sandbox.Outcome] = {}
    really_run = sandbox.run

    def run(task: str, argument: dict[str, Any], **options: Any) -> sandbox.Outcome:
        key = json.dumps([task, {**argument, "path": ""}])
        if key not in answers:
            answers[key] = really_run(task, argument, **options)
        return answers[key]

    monkeypatch.setattr(sandbox, "run", run)


@pytest.mark.parametrize("is_after", [False, True])
def test_a_worker_may_die_around_any_call_and_the_next_one_finishes(
    upload: Upload, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch, is_after: bool
) -> None:
    read_once(monkeypatch)
    whole = CrashingStore(s3_store, at_call=0, is_after=is_after)
    undisturbed = upload(onnx_models.linear(scale=0.5), model="detector")
    with monkeypatch.context() as patched:
        patched.setattr(object_store, "store", lambda: whole)
        verification.advance(undisturbed.pk)
    assert {"head", "read_range", "read", "copy", "put", "list_keys", "lock"} <= set(whole.calls)

    for at_call in worth_dying_at(whole.calls):
        version = upload(onnx_models.linear(scale=at_call), model="detector")
        store = CrashingStore(s3_store, at_call=at_call, is_after=is_after)
        with monkeypatch.context() as patched:
            patched.setattr(object_store, "store", lambda store=store: store)
            # A process that is gone gives no lease back.
            patched.setattr(leases, "back_off", lambda *args, **kwargs: True)
            with pytest.raises(Death, match=f"^{whole.calls[at_call - 1]}$"):
                verification.advance(version.pk)
        with time_machine.travel(clock.now() + timedelta(seconds=LEASE_SECONDS + 1)):
            assert version.pk in leases.due(ModelVersion)
            verification.advance(version.pk)

        version.refresh_from_db()
        assert version.state == VersionState.READY, at_call
        prefix = version.repository_prefix
        assert len(s3_store.list_keys(prefix)) == 2
        key = f"{prefix}detector/1/model.onnx"
        stored = b"".join(s3_store.read(key, s3_store.head(key).version_id))
        assert hashlib.sha256(stored).hexdigest() == version.sha256
        assert (
            AuditEvent.objects.filter(action="version.ready", object_id=str(version.pk)).count()
            == 1
        )


def test_the_removal_of_a_failed_version_survives_death(
    verified: Upload, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at_call in (1, 2):
        version = verified(b"no model at all", filename=f"{at_call}.onnx")
        store = CrashingStore(s3_store, at_call=at_call, is_after=True)
        with monkeypatch.context() as patched:
            patched.setattr(object_store, "store", lambda store=store: store)
            with pytest.raises(Death):
                verification.advance(version.pk)
        with time_machine.travel(clock.now() + timedelta(minutes=5)):
            verification.advance(version.pk)

        version.refresh_from_db()
        assert (version.files.get().s3_version_id, version.next_check_at) == ("", None)
    assert versions_in(s3_store) == []
