"""Files of batch jobs in S3: listed and read by the portal, written by pods through presigned addresses.

The credentials are those of the portal's own store; pods get addresses that are good for one object each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from deployments.batch.domain.chunks import InputFile
from deployments.registry.gateways import download_urls, object_store
from deployments.registry.gateways.object_store_errors import ObjectMissing, translate_errors

# What S3 returns for an object of a bucket that keeps no versions.
_NO_VERSION: Final = "null"
_READ_BYTES: Final = 1 << 20
_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class StoredFile:
    key: str
    size_bytes: int
    written_at: datetime


class BatchStore:
    def __init__(self) -> None:
        store = object_store.s3_store()
        self.bucket = store.bucket
        self._store = store
        # Pods reach the store by the same address as the portal.
        self._client: Any = store.client

    def find(self, bucket: str, key: str) -> InputFile | None:
        try:
            with translate_errors(key):
                response = self._client.head_object(Bucket=bucket, Key=key)
        except ObjectMissing:
            return None
        version = str(response.get("VersionId", ""))
        return InputFile(
            bucket=bucket,
            key=key,
            version_id="" if version == _NO_VERSION else version,
            etag=str(response["ETag"]),
            size_bytes=int(response["ContentLength"]),
        )

    def list_keys(self, bucket: str, prefix: str, *, at_most: int) -> list[str]:
        """List keys in order, at most one more than `at_most`. Keys that stand for folders are left out."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, PaginationConfig={"PageSize": _PAGE}
        )
        keys: list[str] = []
        with translate_errors(prefix):
            for page in pages:
                rows = page.get("Contents", [])
                keys += [str(row["Key"]) for row in rows if not str(row["Key"]).endswith("/")]
                if len(keys) > at_most:
                    break
        return keys[: at_most + 1]

    def blocks(self, file: InputFile) -> Iterator[bytes]:
        """Yield the content of exactly this version. Raises StoreRefused if it was replaced."""
        with translate_errors(file.key):
            response = self._client.get_object(
                Bucket=file.bucket, Key=file.key, IfMatch=file.etag, **_version(file)
            )
            yield from response["Body"].iter_chunks(_READ_BYTES)

    def read(self, key: str, *, at_most: int) -> bytes:
        """Read at most `at_most` bytes of an object in the portal's bucket."""
        with translate_errors(key):
            response = self._client.get_object(Bucket=self.bucket, Key=key)
            return bytes(response["Body"].read(at_most))

    def find_part(self, key: str) -> StoredFile | None:
        """Find a part in the portal's bucket. None if it is missing."""
        try:
            with translate_errors(key):
                response = self._client.head_object(Bucket=self.bucket, Key=key)
        except ObjectMissing:
            return None
        return StoredFile(key, int(response["ContentLength"]), response["LastModified"])

    def count_lines(self, part: StoredFile) -> int:
        with translate_errors(part.key):
            response = self._client.get_object(Bucket=self.bucket, Key=part.key)
            return sum(block.count(b"\n") for block in response["Body"].iter_chunks(_READ_BYTES))

    def put(self, key: str, body: bytes) -> None:
        self._store.put(key, body, content_type="application/json")

    def delete_all(self, prefix: str) -> None:
        self._store.delete_all_versions(prefix)

    def url_of_input(self, file: InputFile, *, seconds: int) -> str:
        """Sign an address for GET of this version. The sender adds If-Match, which is signed, and may add a range."""
        params = {"Bucket": file.bucket, "Key": file.key, "IfMatch": file.etag, **_version(file)}
        return self._presign("get_object", params, seconds)

    def url_to_read(self, key: str, *, seconds: int) -> str:
        return self._presign("get_object", {"Bucket": self.bucket, "Key": key}, seconds)

    def url_to_create(self, key: str, *, seconds: int) -> str:
        """Sign an address for one PUT with If-None-Match: *, which is signed, so that an existing object is never
        replaced.
        """
        params = {"Bucket": self.bucket, "Key": key, "IfNoneMatch": "*"}
        return self._presign("put_object", params, seconds)

    def url_to_download(self, key: str, *, filename: str, seconds: int) -> str:
        """Sign an address for people, at the address of the store that browsers reach."""
        return download_urls.sign(
            self._store.browser_client, self.bucket, key, filename=filename, seconds=seconds
        )

    def _presign(self, operation: str, params: dict[str, str], seconds: int) -> str:
        with translate_errors(params["Key"]):
            url = self._client.generate_presigned_url(operation, Params=params, ExpiresIn=seconds)
        return str(url)


def _version(file: InputFile) -> dict[str, str]:
    return {"VersionId": file.version_id} if file.version_id else {}
