"""The files of a version in the object store, each at its VersionId, read in ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployments.registry.gateways.object_store import ArtifactStore, StoredObject


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    store: ArtifactStore
    objects: Mapping[str, StoredObject]

    @property
    def sizes(self) -> Mapping[str, int]:
        return {path: stored.size_bytes for path, stored in self.objects.items()}

    def read(self, path: str, start: int, count: int) -> bytes:
        stored = self.objects[path]
        count = min(count, stored.size_bytes - start)
        if start < 0 or count <= 0:
            return b""
        return self.store.read_range(stored.key, stored.version_id, start, count)
