"""Buckets that models are imported from: listed by the portal, copied inside the store.

The credentials are those of the portal's own store; no byte passes through the portal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from deployments.imports.domain.errors import SourceChanged, SourceRefused
from deployments.imports.domain.listing import SourceFile
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import (
    ArtifactError,
    ObjectMissing,
    StoredPart,
    StoreRefused,
)
from deployments.registry.gateways.object_store_errors import translate_errors

# What S3 returns for an object of a bucket that keeps no versions.
_NO_VERSION: Final = "null"
_PRECONDITION_FAILED: Final = 412
_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class SourceObject:
    """The bytes that were listed: by VersionId where the bucket keeps versions, and by ETag."""

    bucket: str
    key: str
    version_id: str
    etag: str
    size_bytes: int

    @property
    def copy_source(self) -> dict[str, str]:
        version = {"VersionId": self.version_id} if self.version_id else {}
        return {"Bucket": self.bucket, "Key": self.key, **version}


class SourceBucket:
    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self._store = object_store.s3_store()
        self._client: Any = self._store.client

    def find(self, key: str) -> SourceFile | None:
        """Return the newest version of one object."""
        try:
            return self._head(key, path=key.rpartition("/")[2])
        except ObjectMissing:
            return None

    def list_files(
        self, prefix: str, *, at_most: int, keep_alive: Callable[[], None]
    ) -> list[SourceFile]:
        """Return the newest versions below the prefix, at most one more than `at_most`. Keys that stand for
        folders are left out.
        """
        keys = self._keys(prefix, at_most)
        files = []
        for key in keys:
            keep_alive()
            try:
                files.append(self._head(key, path=key[len(prefix) :]))
            except ObjectMissing as error:
                raise SourceChanged(f"{key} was deleted while the bucket was listed.") from error
        return files

    def read(self, file: SourceFile) -> bytes:
        """Return the listed bytes; small files only. Raises SourceChanged if they are gone."""
        which = {"VersionId": file.version_id} if file.version_id else {}
        with self._reading(file.locator), translate_errors(file.locator):
            response = self._client.get_object(Bucket=self.bucket, Key=file.locator, **which)
            body: bytes = response["Body"].read(file.size_bytes + 1)
        if len(body) != file.size_bytes:
            raise SourceChanged(
                f"{file.locator} was replaced in {self.bucket} after it was listed."
            )
        return body

    def copy(self, source: SourceObject, target_key: str) -> None:
        """Copy a whole object. Raises SourceChanged if it is no longer the listed one."""
        with self._copying(source):
            self._require_unchanged(source)
            self._client.copy_object(
                Bucket=self._store.bucket,
                Key=target_key,
                CopySource=source.copy_source,
                CopySourceIfMatch=source.etag,
                # Neither the type nor tags and metadata of the source come along.
                MetadataDirective="REPLACE",
                TaggingDirective="REPLACE",
                ContentType="application/octet-stream",
            )

    def copy_part(
        self,
        source: SourceObject,
        target_key: str,
        upload_id: str,
        number: int,
        start: int,
        count: int,
    ) -> StoredPart:
        with self._copying(source):
            if not source.version_id:
                self._require_unchanged(source)
            response = self._client.upload_part_copy(
                Bucket=self._store.bucket,
                Key=target_key,
                UploadId=upload_id,
                PartNumber=number,
                CopySource=source.copy_source,
                CopySourceIfMatch=source.etag,
                CopySourceRange=f"bytes={start}-{start + count - 1}",
            )
        return StoredPart(number, count, str(response["CopyPartResult"]["ETag"]))

    def _keys(self, prefix: str, at_most: int) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix, PaginationConfig={"PageSize": _PAGE}
        )
        keys: list[str] = []
        with self._reading(prefix), translate_errors(prefix):
            for page in pages:
                rows = page.get("Contents", [])
                keys += [str(row["Key"]) for row in rows if not str(row["Key"]).endswith("/")]
                if len(keys) > at_most:
                    break
        return keys[: at_most + 1]

    def _head(self, key: str, *, path: str, version_id: str = "") -> SourceFile:
        which = {"VersionId": version_id} if version_id else {}
        with self._reading(key), translate_errors(key):
            response = self._client.head_object(Bucket=self.bucket, Key=key, **which)
        version = str(response.get("VersionId", ""))
        return SourceFile(
            path=path,
            size_bytes=int(response["ContentLength"]),
            locator=key,
            version_id="" if version == _NO_VERSION else version,
            etag=str(response["ETag"]),
        )

    def _require_unchanged(self, source: SourceObject) -> None:
        """Check that the object is still the listed one: some compatible stores ignore conditions on a copy.
        Raises SourceChanged.
        """
        now = self._head(source.key, path="", version_id=source.version_id)
        if (now.etag, now.size_bytes) != (source.etag, source.size_bytes):
            raise SourceChanged(f"{source.key} was replaced in {self.bucket} after it was listed.")

    @contextmanager
    def _reading(self, key: str) -> Iterator[None]:
        try:
            yield
        except StoreRefused as error:
            raise SourceRefused(
                f"The portal may not read s3://{self.bucket}/{key}. Ask a platform admin to allow its "
                "role s3:ListBucket, s3:GetObject and s3:GetObjectVersion there."
            ) from error

    @contextmanager
    def _copying(self, source: SourceObject) -> Iterator[None]:
        try:
            with translate_errors(source.key):
                yield
        except ObjectMissing as error:
            raise SourceChanged(
                f"{source.key} was deleted from {self.bucket} after it was listed."
            ) from error
        except StoreRefused as error:
            if _status_of(error) == _PRECONDITION_FAILED:
                raise SourceChanged(
                    f"{source.key} was replaced in {self.bucket} after it was listed."
                ) from error
            raise SourceRefused(
                f"The portal may not copy s3://{self.bucket}/{source.key}. Ask a platform admin to "
                "allow its role s3:GetObject and s3:GetObjectVersion there."
            ) from error


def _status_of(error: ArtifactError) -> int:
    response = getattr(error.__cause__, "response", {})
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
