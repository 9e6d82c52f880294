"""Results of the object store, independent of its client library."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredPart:
    number: int
    size_bytes: int
    etag: str
    sha256_base64: str = ""


@dataclass(frozen=True, slots=True)
class StoredObject:
    key: str
    version_id: str
    size_bytes: int
    etag: str = ""
