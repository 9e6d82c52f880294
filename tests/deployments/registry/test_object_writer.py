"""Streams of unknown length become objects, whatever the sizes of their chunks."""

from __future__ import annotations

import hashlib

import pytest

from deployments.registry.gateways import object_writer
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.gateways.object_writer import ObjectWriter

MIB = 2**20


@pytest.mark.parametrize(
    ("size", "parts"),
    [(0, 0), (1, 0), (5 * MIB, 0), (5 * MIB + 1, 2), (10 * MIB, 2), (12 * MIB, 3)],
)
def test_what_was_written_is_what_is_stored(
    s3_store: S3Store, monkeypatch: pytest.MonkeyPatch, size: int, parts: int
) -> None:
    monkeypatch.setattr(object_writer, "PART_BYTES", 5 * MIB)
    body = bytes(range(256)) * (size // 256 + 1)
    body = body[:size]
    writer = ObjectWriter(s3_store, "uploads/a")

    for start in range(0, size, 700_001):
        writer.write(body[start : start + 700_001])
    written = writer.finish()

    stored = s3_store.head("uploads/a", written.version_id)
    assert b"".join(s3_store.read("uploads/a", written.version_id)) == body
    assert (written.size_bytes, stored.size_bytes) == (size, size)
    assert written.sha256 == hashlib.sha256(body).hexdigest()
    assert stored.etag.strip('"').endswith(f"-{parts}" if parts else stored.etag.strip('"')[-3:])


def test_what_is_not_finished_is_aborted_under_its_prefix(
    s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_writer, "PART_BYTES", 5 * MIB)
    writer = ObjectWriter(s3_store, "uploads/a")
    writer.write(bytes(11 * MIB))

    s3_store.abort_uploads("uploads/other")
    assert len(s3_store.client.list_multipart_uploads(Bucket=s3_store.bucket)["Uploads"]) == 1
    s3_store.abort_uploads("uploads/")

    assert "Uploads" not in s3_store.client.list_multipart_uploads(Bucket=s3_store.bucket)
    assert s3_store.list_keys("") == []
