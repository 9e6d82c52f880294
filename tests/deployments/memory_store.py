"""An object store in memory, for tests about stored objects rather than the S3 protocol."""

from __future__ import annotations

from collections.abc import Iterator

from deployments.models import ModelVersion
from deployments.registry.domain import object_keys
from deployments.registry.gateways.object_store import ArtifactError, ObjectMissing, StoredObject
from tests import recorded


class MemoryStore:
    """In the place of S3. `fail_with` makes every call raise it."""

    bucket = "slipway-models"

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        # Of what was put; what is laid out has a size only.
        self.bodies: dict[str, bytes] = {}
        # Of what was written after it was laid out.
        self.versions: dict[str, str] = {}
        self.fail_with: ArtifactError | None = None

    def lay_out(self, version: ModelVersion) -> None:
        prefix, name = version.repository_prefix, version.model.name
        self.sizes[object_keys.model_file_key(prefix, name, "model.onnx")] = version.size_bytes or 0
        self.sizes[object_keys.config_key(prefix, name)] = 100
        version.laid_out = recorded.rows_of(self, prefix, digest=lambda one: "ab" * 32)
        version.save(update_fields=["laid_out"])

    def overwrite(self, key: str, *, size: int | None = None) -> None:
        """By someone who may write to the bucket: another object on top of what lies there."""
        self.sizes[key] = self.sizes.get(key, 1) if size is None else size
        self.versions[key] = "intruder"

    def put_right(self, key: str) -> None:
        """The intruder's version is removed, so that the one before is the newest again."""
        del self.versions[key]

    def list_keys(self, prefix: str) -> list[str]:
        self._answer()
        return sorted(key for key in self.sizes if key.startswith(prefix))

    def list_newest(self, prefix: str) -> list[StoredObject]:
        return [self.head(key) for key in self.list_keys(prefix)]

    def head(self, key: str, version_id: str = "") -> StoredObject:
        self._answer()
        if key not in self.sizes:
            raise ObjectMissing(key)
        newest = version_id or self.versions.get(key, "v1")
        return StoredObject(key, newest, self.sizes[key], f"etag-{newest}")

    def put(self, key: str, body: bytes, *, content_type: str) -> str:
        self._answer()
        self.bodies[key], self.sizes[key] = body, len(body)
        return "v1"

    def read(self, key: str, version_id: str) -> Iterator[bytes]:
        self._answer()
        yield self.bodies[key]

    def _answer(self) -> None:
        if self.fail_with is not None:
            raise self.fail_with
