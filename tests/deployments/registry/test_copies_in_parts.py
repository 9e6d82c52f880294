"""Large objects are copied in parts inside the store, and the worker's lease is renewed in between."""

from __future__ import annotations

import hashlib

import pytest

from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import S3Store

_PART = 5 * 2**20  # the smallest that S3 takes


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_LARGEST_SINGLE_COPY_BYTES", _PART)
    monkeypatch.setattr(object_store, "_COPY_PART_BYTES", _PART)


@pytest.mark.parametrize(
    ("size_bytes", "renewals"), [(_PART, 0), (_PART + 1, 2), (2 * _PART + 7, 3)]
)
def test_the_copy_has_the_same_bytes_and_each_part_renews_the_lease(
    s3_store: S3Store, small_parts: None, size_bytes: int, renewals: int
) -> None:
    body = hashlib.shake_128(str(size_bytes).encode()).digest(size_bytes)
    version_id = s3_store.put("source", body, content_type="application/octet-stream")
    s3_store.put("source", b"another version", content_type="application/octet-stream")
    calls: list[str] = []

    s3_store.copy(s3_store.head("source", version_id), "target", lambda: calls.append("renewed"))

    target = s3_store.head("target")
    assert target.size_bytes == size_bytes
    assert b"".join(s3_store.read("target", target.version_id)) == body
    assert len(calls) == renewals


def test_a_lost_lease_ends_the_copy_before_there_is_an_object(
    s3_store: S3Store, small_parts: None
) -> None:
    version_id = s3_store.put("source", b"x" * (3 * _PART), content_type="text/plain")

    def lose() -> None:
        raise RuntimeError("the lease is another worker's")

    with pytest.raises(RuntimeError, match="another worker's"):
        s3_store.copy(s3_store.head("source", version_id), "target", lose)

    assert s3_store.list_keys("target") == []
