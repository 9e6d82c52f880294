"""Write a stream of unknown length as one object, in bounded memory, with its SHA-256."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from deployments.registry.gateways.object_store import ArtifactStore
from deployments.registry.gateways.object_store_types import StoredPart

# 50 GiB in 1,000 parts; S3 allows 10,000.
PART_BYTES: Final = 52 * 2**20
_CONTENT_TYPE: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class WrittenObject:
    key: str
    version_id: str
    size_bytes: int
    sha256: str


class ObjectWriter:
    """A writer of one object, which holds at most one part in memory. A small object is written by one PUT.

    An object that is not finished must be aborted (`ArtifactStore.abort_uploads`).
    """

    def __init__(self, store: ArtifactStore, key: str) -> None:
        self._store, self._key = store, key
        self._digest = hashlib.sha256()
        self._buffer = bytearray()
        self._upload_id = ""
        self._parts: list[StoredPart] = []
        self.size_bytes = 0

    def write(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        self._buffer += chunk
        self.size_bytes += len(chunk)
        while len(self._buffer) > PART_BYTES:
            self._send(bytes(self._buffer[:PART_BYTES]))
            del self._buffer[:PART_BYTES]

    def finish(self) -> WrittenObject:
        body = bytes(self._buffer)
        if not self._upload_id:
            version_id = self._store.put(self._key, body, content_type=_CONTENT_TYPE)
        else:
            self._send(body)
            version_id = self._store.complete_and_wait(self._key, self._upload_id, self._parts)
        return WrittenObject(self._key, version_id, self.size_bytes, self._digest.hexdigest())

    def _send(self, body: bytes) -> None:
        if not self._upload_id:
            self._upload_id = self._store.create_upload(self._key, with_part_checksums=False)
        number = len(self._parts) + 1
        self._parts.append(self._store.put_part(self._key, self._upload_id, number, body))
