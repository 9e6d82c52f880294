"""An object store in memory, for tests that look at what lies there and not at how S3 speaks."""

from __future__ import annotations

from deployments.domain import layout
from deployments.gateways.artifacts import ArtifactError, ObjectMissing, StoredObject
from deployments.models import ModelVersion


class MemoryStore:
    """In the place of S3. `fail_with` makes every call raise it."""

    bucket = "slipway-models"

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.fail_with: ArtifactError | None = None

    def lay_out(self, version: ModelVersion) -> None:
        prefix, name = version.repository_prefix, version.model.name
        self.sizes[layout.model_file_key(prefix, name)] = version.size_bytes or 0
        self.sizes[layout.config_key(prefix, name)] = 100

    def list_keys(self, prefix: str) -> list[str]:
        self._answer()
        return sorted(key for key in self.sizes if key.startswith(prefix))

    def head(self, key: str, version_id: str = "") -> StoredObject:
        self._answer()
        if key not in self.sizes:
            raise ObjectMissing(key)
        return StoredObject(key=key, version_id=version_id or "v1", size_bytes=self.sizes[key])

    def _answer(self) -> None:
        if self.fail_with is not None:
            raise self.fail_with
