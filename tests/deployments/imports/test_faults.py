"""Faults during an import: nothing is lost, nothing is mixed, and it is finished when the fault goes."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.imports.gateways import source_bucket
from deployments.imports.services import bucket_source, imports
from deployments.models import Import, ModelVersion
from deployments.registry.gateways.object_store import S3Store
from deployments.states import ImportState, VersionState
from portal.core.errors import Conflict
from tests.deployments import onnx_models
from tests.deployments.imports.conftest import (
    Death,
    SourceOfModels,
    Start,
    calls_of,
    forget_leases,
    run_until_over,
    worked,
)
from tests.deployments.uploading import People, versions_in

pytestmark = pytest.mark.django_db
MODEL = onnx_models.linear()
MIB = 2**20


def stored(store: S3Store, version: ModelVersion) -> dict[str, bytes]:
    return {
        file.path: b"".join(store.read(file.key, file.s3_version_id))
        for file in version.files.all()
    }


def open_uploads(store: S3Store) -> list[str]:
    rows = store.client.list_multipart_uploads(Bucket=store.bucket).get("Uploads", [])
    return [row["Key"] for row in rows]


def test_bytes_replaced_after_the_listing_do_not_come_along(
    start: Start, source: SourceOfModels, s3_store: S3Store
) -> None:
    source.put("m/a.txt", b"a")
    source.put("m/model.onnx", MODEL)
    job = start(f"s3://{source.name}/m/")
    with calls_of(s3_store.client, dies_at=5), pytest.raises(Death):
        worked(job)
    assert job.version.files.count() == 2
    source.put("m/model.onnx", b"replaced")

    forget_leases()

    job = worked(job)

    assert stored(s3_store, job.version) == {"a.txt": b"a", "model.onnx": MODEL}


def test_without_versions_a_replaced_object_stops_the_import_and_resuming_lists_again(
    start: Start, people: People, s3_store: S3Store, settings: Any
) -> None:
    source = SourceOfModels(s3_store, is_versioned=False)
    settings.SLIPWAY_IMPORT_S3 = [f"s3://{source.name}"]
    source.put("m/a.txt", b"a")
    source.put("m/model.onnx", MODEL)
    job = start(f"s3://{source.name}/m/")
    with calls_of(s3_store.client, dies_at=5), pytest.raises(Death):
        worked(job)
    newer = onnx_models.linear(scale=2)
    source.put("m/model.onnx", newer)
    forget_leases()

    job = worked(job)

    assert (job.state, job.version.state) == (ImportState.FAILED, VersionState.UPLOADING)
    assert job.error == (
        f"m/model.onnx was replaced in {source.name} after it was listed. Resume the import to list "
        "the source again."
    )
    imports.resume(actor=people.member, import_id=job.pk)
    job = worked(job)
    assert job.state == ImportState.DONE
    assert stored(s3_store, job.version) == {"a.txt": b"a", "model.onnx": newer}


def test_large_objects_are_copied_in_parts_and_resumed_by_part(
    start: Start, source: SourceOfModels, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SINGLE_COPY_BYTES", "COPY_PART_BYTES"):
        monkeypatch.setattr(bucket_source, name, 5 * MIB)
    body = bytes(range(256)) * (12 * MIB // 256)
    source.put("m/weights.bin", body)
    source.put("m/model.onnx", MODEL)
    job = start(f"s3://{source.name}/m/")

    def died() -> int:
        with calls_of(s3_store.client) as calls, monkeypatch.context() as patch:
            copies = iter(range(2))
            copy = source_bucket.SourceBucket.copy_part

            def copy_two(*args: Any) -> Any:
                if next(copies, None) is None:
                    raise Death
                return copy(*args)

            patch.setattr(source_bucket.SourceBucket, "copy_part", copy_two)
            with pytest.raises(Death):
                worked(job)
        return calls.count("UploadPartCopy")

    assert died() == 2
    assert Import.objects.get().copied_bytes == len(MODEL) + 10 * MIB
    forget_leases()
    with calls_of(s3_store.client) as calls:
        worked(job)

    assert calls.count("UploadPartCopy") == 1
    assert stored(s3_store, job.version) == {"model.onnx": MODEL, "weights.bin": body}


def test_a_worker_that_dies_at_any_call_loses_nothing(
    start: Start, source: SourceOfModels, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SINGLE_COPY_BYTES", "COPY_PART_BYTES"):
        monkeypatch.setattr(bucket_source, name, 5 * MIB)
    body = bytes(6 * MIB)
    source.put("m/1/model.onnx", MODEL)
    source.put("m/weights.bin", body)
    with calls_of(s3_store.client) as calls:
        worked(start(f"s3://{source.name}/m/"))
    assert len(calls) > 10

    for is_after in (False, True):
        for number in range(1, len(calls) + 1):
            job = start(f"s3://{source.name}/m/")
            with (
                calls_of(s3_store.client, dies_at=number, is_after=is_after),
                pytest.raises(Death),
            ):
                worked(job)
            assert job.version.state == VersionState.UPLOADING
            forget_leases()
            job = worked(job)
            assert (job.state, job.version.state) == (ImportState.DONE, VersionState.VERIFYING)
            assert stored(s3_store, job.version) == {"1/model.onnx": MODEL, "weights.bin": body}
            assert open_uploads(s3_store) == []


def test_a_cancel_while_it_copies_stops_it_and_leaves_no_bytes(
    start: Start,
    source: SourceOfModels,
    people: People,
    s3_store: S3Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in "abc":
        source.put(f"m/{name}.onnx", MODEL)
    job = start(f"s3://{source.name}/m/")
    copy = source_bucket.SourceBucket.copy

    def cancel_then_copy(self: Any, *args: Any) -> None:
        imports.cancel(actor=people.member, import_id=job.pk)
        copy(self, *args)

    monkeypatch.setattr(source_bucket.SourceBucket, "copy", cancel_then_copy)
    with calls_of(s3_store.client) as calls:
        job = worked(job)

    assert calls.count("CopyObject") == 1
    assert (job.state, job.error) == (ImportState.CANCELED, "member canceled the import.")
    assert job.version.state == VersionState.FAILED
    assert versions_in(s3_store) == []
    with pytest.raises(Conflict):
        imports.resume(actor=people.member, import_id=job.pk)
    with pytest.raises(Conflict):
        imports.cancel(actor=people.member, import_id=job.pk)


def test_while_the_store_is_down_it_waits_and_says_so(
    start: Start, source: SourceOfModels, s3_store: S3Store, settings: Any
) -> None:
    source.put("m.onnx", MODEL)
    job = start(f"s3://{source.name}/m.onnx")
    address, settings.SLIPWAY_S3_ENDPOINT_URL = (
        settings.SLIPWAY_S3_ENDPOINT_URL,
        "http://127.0.0.1:9",
    )

    job = worked(job)

    assert (job.state, job.version.state) == (ImportState.RUNNING, VersionState.UPLOADING)
    assert job.error.startswith("Object storage is not responding. Nothing is lost")
    settings.SLIPWAY_S3_ENDPOINT_URL = address
    assert run_until_over(job).state == VersionState.READY
    assert Import.objects.get().error == ""
