"""Nothing waits for the object store while a transaction is open."""

from __future__ import annotations

import pytest
from django.db import transaction

from deployments.models import ModelVersion
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import uploads, verification
from deployments.states import VersionState
from tests.deployments import onnx_models
from tests.deployments.uploading import People, Upload, draft_of
from tests.network_guard import CalledInTransaction, Guarded

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def calls(transactional_db: None, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    monkeypatch.setattr(object_store, "store", lambda: Guarded(s3_store, made))
    return made


def test_the_guard_detects_a_call_inside_a_transaction(calls: list[str]) -> None:
    with pytest.raises(CalledInTransaction), transaction.atomic():
        object_store.store().list_keys("")


def test_uploading_and_verifying(calls: list[str], upload: Upload) -> None:
    version = upload(onnx_models.linear())
    verification.advance(version.pk)

    assert ModelVersion.objects.get().state == VersionState.READY
    assert {"create_upload", "complete_upload", "head", "read", "copy", "put"} <= set(calls)


def test_failing_and_abandoning(calls: list[str], upload: Upload, people: People) -> None:
    refused = upload(b"no model at all", model="rubbish")
    verification.advance(refused.pk)
    verification.advance(refused.pk)
    given_up = uploads.start(
        actor=people.member,
        team_slug="vision",
        model_name="detector",
        draft=draft_of("a.onnx", 10),
    )
    uploads.abandon(actor=people.member, version_id=given_up.pk)
    verification.advance(given_up.pk)

    assert set(ModelVersion.objects.values_list("state", flat=True)) == {VersionState.FAILED}
    assert {"abort_uploads", "delete_all_versions"} <= set(calls)
