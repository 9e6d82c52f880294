"""Imports from a bucket: the listed bytes are copied inside the store, whatever happens meanwhile."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from deployments.imports.services import imports
from deployments.models import Import, ImportedFile, ModelVersion
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import uploads
from deployments.states import ImportState, VersionState
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from tests.deployments import onnx_models
from tests.deployments.imports.conftest import (
    SourceOfModels,
    Start,
    calls_of,
    verified,
    worked,
)
from tests.deployments.uploading import People, Upload, versions_in

pytestmark = pytest.mark.django_db
MODEL = onnx_models.linear()
MIB = 2**20


def stored(store: S3Store, version: ModelVersion) -> dict[str, bytes]:
    return {
        file.path: b"".join(store.read(file.key, file.s3_version_id))
        for file in version.files.all()
    }


def test_a_prefix_becomes_a_verified_version_without_a_byte_through_the_portal(
    start: Start, source: SourceOfModels, s3_store: S3Store
) -> None:
    key_version = source.put("models/detector/1/model.onnx", MODEL)
    source.put("models/detector/notes.txt", b"mine")
    source.put("models/detector-other/model.onnx", b"other")
    source.client.put_object(Bucket=source.name, Key="models/detector/empty/", Body=b"")

    with calls_of(s3_store.client) as calls:
        job = worked(start(f"s3://{source.name}/models/detector"))

    assert not {"GetObject", "PutObject", "UploadPart"} & set(calls)
    assert (job.state, job.error, job.copied_bytes) == (ImportState.DONE, "", len(MODEL) + 4)
    assert job.version.state == VersionState.VERIFYING
    assert stored(s3_store, job.version) == {"1/model.onnx": MODEL, "notes.txt": b"mine"}
    origin = ImportedFile.objects.get(file__path="1/model.onnx")
    assert (origin.locator, origin.version_id) == ("models/detector/1/model.onnx", key_version)
    assert job.version.declared_size_bytes == len(MODEL) + 4


def test_one_object_is_verified_like_any_upload(
    start: Start, source: SourceOfModels, upload: Upload
) -> None:
    source.put("a/detector.onnx", MODEL)
    first = upload(MODEL)
    run_until_over_first = verified(Import(version=first))

    job = worked(start(f"s3://{source.name}/a/detector.onnx", metadata={"accuracy": 0.5}))
    version = verified(job)

    assert run_until_over_first.state == version.state == VersionState.READY
    assert version.sha256 == hashlib.sha256(MODEL).hexdigest()
    assert version.metadata == {"metrics": {"accuracy": 0.5}}
    details = {step["name"]: step["detail"] for step in version.checks}
    assert "identical to version 1" in details["Digest"]


@pytest.mark.parametrize(
    ("pattern", "address", "is_allowed"),
    [
        ("s3://{bucket}", "s3://{bucket}/a/m.onnx", True),
        ("s3://{bucket}/a", "s3://{bucket}/a/m.onnx", True),
        ("s3://{bucket}/a/", "s3://{bucket}/a", True),
        ("s3://{bucket}/a", "s3://{bucket}/ab/m.onnx", False),
        ("s3://{bucket}/a/", "s3://{bucket}/", False),
        ("s3://{bucket}/{team}", "s3://{bucket}/vision/m.onnx", True),
        ("s3://{bucket}/{team}", "s3://{bucket}/vision-lab/m.onnx", False),
        ("s3://{bucket}/{team}", "s3://{bucket}/nlp/m.onnx", False),
        ("s3://other", "s3://{bucket}/a/m.onnx", False),
        ("", "s3://{bucket}/a/m.onnx", False),
    ],
)
def test_only_allowed_prefixes_are_imported_from(
    start: Start,
    source: SourceOfModels,
    settings: Any,
    pattern: str,
    address: str,
    is_allowed: bool,
) -> None:
    pattern = pattern.replace("{bucket}", source.name)
    settings.SLIPWAY_IMPORT_S3 = [pattern] if pattern else []
    address = address.replace("{bucket}", source.name)
    audited = AuditEvent.objects.count()

    if is_allowed:
        assert start(address).state == ImportState.RUNNING
        return
    with pytest.raises(Invalid, match="SLIPWAY_IMPORT_S3"):
        start(address)
    assert (Import.objects.count(), ModelVersion.objects.count()) == (0, 0)
    assert AuditEvent.objects.count() == audited


def test_the_portals_own_bucket_is_refused_even_if_it_is_allowed(
    start: Start, s3_store: S3Store, settings: Any
) -> None:
    settings.SLIPWAY_IMPORT_S3 = [f"s3://{s3_store.bucket}"]

    with pytest.raises(Invalid, match="portal's own bucket"):
        start(f"s3://{s3_store.bucket}/uploads/nlp/")


def test_what_is_withdrawn_from_the_setting_is_not_copied(
    start: Start, source: SourceOfModels, settings: Any
) -> None:
    source.put("m.onnx", MODEL)
    job = start(f"s3://{source.name}/m.onnx")
    settings.SLIPWAY_IMPORT_S3 = []

    job = worked(job)

    assert (job.state, job.version.files.count()) == (ImportState.FAILED, 0)
    assert "SLIPWAY_IMPORT_S3" in job.error


def test_files_that_cannot_be_a_version_fail_the_import_before_a_byte_is_copied(
    start: Start, source: SourceOfModels, s3_store: S3Store, settings: Any
) -> None:
    source.put("m/a.txt", b"x" * 100)
    source.put("m/A.txt", b"x")
    source.put("large.onnx", b"x" * 100)
    same_name = worked(start(f"s3://{source.name}/m/"))
    settings.SLIPWAY_TEAM_STORAGE_BYTES = 99
    too_much = worked(start(f"s3://{source.name}/large.onnx", model="other"))
    missing = worked(start(f"s3://{source.name}/nothing"))

    assert "have the same name" in same_name.error
    assert too_much.error.endswith("Ask a platform admin for more storage.")
    assert missing.error.startswith(f"There is nothing at s3://{source.name}/nothing.")
    assert {job.state for job in (same_name, too_much, missing)} == {ImportState.FAILED}
    assert versions_in(s3_store) == []


def test_nothing_is_uploaded_into_an_import(
    start: Start, source: SourceOfModels, people: People
) -> None:
    job = start(f"s3://{source.name}/m.onnx")
    for call in (uploads.complete, uploads.stored_parts):
        options = {"path": "m.onnx"} if call is uploads.stored_parts else {}
        with pytest.raises(Conflict) as refusal:
            call(actor=people.member, version_id=job.version_id, **options)
        assert refusal.value.code == "importing"


def test_discarding_its_version_ends_it(
    start: Start, source: SourceOfModels, people: People
) -> None:
    source.put("m.onnx", MODEL)
    job = start(f"s3://{source.name}/m.onnx")
    uploads.abandon(actor=people.member, version_id=job.version_id)

    job = worked(job)

    assert (job.state, job.error) == (ImportState.CANCELED, "member canceled the upload.")


def test_who_may_import(source: SourceOfModels, people: People, s3_store: S3Store) -> None:
    draft = imports.ImportDraft(f"s3://{source.name}/m.onnx")
    for actor, error in ((people.viewer, Forbidden), (people.stranger, NotFound)):
        with pytest.raises(error):
            imports.start(actor=actor, team_slug="vision", model_name="detector", draft=draft)
    assert not ModelVersion.objects.exists()
