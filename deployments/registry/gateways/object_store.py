"""The object store: S3 or a compatible store. The only user of boto3.

Every call has a timeout and raises our own errors. Objects are read by key and VersionId, so that
exactly the verified bytes are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import boto3
from botocore.config import Config
from django.conf import settings

from deployments.registry.gateways import multipart_completion, object_locks, object_tags
from deployments.registry.gateways.object_store_errors import (
    ArtifactError,
    ObjectMissing,
    PartsRefused,
    StillAssembling,
    StoreRefused,
    StoreUnreachable,
    UploadMissing,
    translate_errors,
)
from deployments.registry.gateways.object_store_types import ArtifactStore, StoredObject, StoredPart

__all__ = [
    "ArtifactError",
    "ArtifactStore",
    "ObjectMissing",
    "PartsRefused",
    "StillAssembling",
    "StoreRefused",
    "StoreUnreachable",
    "StoredObject",
    "StoredPart",
    "UploadMissing",
    "store",
]

PRESIGNED_SECONDS: Final = 3600
_READ_BYTES: Final = 1 << 20
_LARGEST_SINGLE_COPY_BYTES: Final = 2**30
_COPY_PART_BYTES: Final = 512 * 2**20
_DELETE_BATCH: Final = 1000
_ATTEMPTS: Final = 4


class S3Store:
    def __init__(
        self, *, bucket: str, client: Any, browser_client: Any, completing_client: Any
    ) -> None:
        """Wrap the clients of a bucket. `completing_client` must not retry (multipart_completion)."""
        self.bucket = bucket
        self.client = client
        self.browser_client = browser_client
        self._completing_client = completing_client

    def create_upload(self, key: str, *, with_part_checksums: bool) -> str:
        """Start a multipart upload and return its id. With part checksums, S3 requires a SHA-256 for every part
        and rejects a mismatch.
        """
        extra = {"ChecksumAlgorithm": "SHA256"} if with_part_checksums else {}
        with translate_errors(key):
            response = self.client.create_multipart_upload(Bucket=self.bucket, Key=key, **extra)
        return str(response["UploadId"])

    def presign_part(
        self, key: str, upload_id: str, number: int, *, size_bytes: int, sha256_base64: str = ""
    ) -> str:
        """Return a URL for one PUT of exactly this size: Content-Length is signed.

        The client must send a checksum as x-amz-checksum-sha256, which is signed as well.
        """
        params = {"Bucket": self.bucket, "Key": key, "UploadId": upload_id, "PartNumber": number}
        params["ContentLength"] = size_bytes
        if sha256_base64:
            params["ChecksumSHA256"] = sha256_base64
        with translate_errors(key):
            return str(
                self.browser_client.generate_presigned_url(
                    "upload_part", Params=params, ExpiresIn=PRESIGNED_SECONDS
                )
            )

    def list_parts(self, key: str, upload_id: str) -> list[StoredPart]:
        """Return the stored parts. Raises UploadMissing for a completed, aborted or unknown upload."""
        pages = self.client.get_paginator("list_parts").paginate(
            Bucket=self.bucket, Key=key, UploadId=upload_id
        )
        with translate_errors(key):
            return [
                StoredPart(
                    number=int(part["PartNumber"]),
                    size_bytes=int(part["Size"]),
                    etag=str(part["ETag"]),
                    sha256_base64=str(part.get("ChecksumSHA256", "")),
                )
                for page in pages
                for part in page.get("Parts", [])
            ]

    def put_part(self, key: str, upload_id: str, number: int, body: bytes) -> StoredPart:
        with translate_errors(key):
            response = self.client.upload_part(
                Bucket=self.bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=body
            )
        return StoredPart(number=number, size_bytes=len(body), etag=str(response["ETag"]))

    def complete_upload(self, key: str, upload_id: str, parts: list[StoredPart]) -> str:
        """Complete an upload and return the VersionId of the whole object. Raises StillAssembling if no answer
        came in time.
        """
        return multipart_completion.complete(
            self._completing_client, self.bucket, key, upload_id, parts
        )

    def complete_and_wait(self, key: str, upload_id: str, parts: list[StoredPart]) -> str:
        """Call `complete_upload`, but wait for the object as long as its size may take. For workers."""
        return multipart_completion.wait_for(
            lambda: self.complete_upload(key, upload_id, parts),
            lambda: self.head(key).version_id,
            size_bytes=sum(part.size_bytes for part in parts),
        )

    def abort_upload(self, key: str, upload_id: str) -> None:
        try:
            with translate_errors(key):
                self.client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)
        except UploadMissing:
            return

    def abort_uploads(self, prefix: str) -> None:
        """Abort every open upload under the prefix."""
        pages = self.client.get_paginator("list_multipart_uploads").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        with translate_errors(prefix):
            rows = [row for page in pages for row in page.get("Uploads", [])]
        for row in rows:
            self.abort_upload(str(row["Key"]), str(row["UploadId"]))

    def head(self, key: str, version_id: str = "") -> StoredObject:
        """Describe an object. Without a version_id, its newest version."""
        which = {"VersionId": version_id} if version_id else {}
        with translate_errors(key):
            response = self.client.head_object(Bucket=self.bucket, Key=key, **which)
        return StoredObject(
            key=key,
            version_id=str(response.get("VersionId", "")),
            size_bytes=int(response["ContentLength"]),
            etag=str(response.get("ETag", "")),
        )

    def read(self, key: str, version_id: str) -> Iterator[bytes]:
        with translate_errors(key):
            response = self.client.get_object(Bucket=self.bucket, Key=key, VersionId=version_id)
            yield from response["Body"].iter_chunks(_READ_BYTES)

    def read_range(self, key: str, version_id: str, start: int, count: int) -> bytes:
        """Read `count` bytes from `start`, which must be inside the object. S3 ends at its last byte."""
        which = f"bytes={start}-{start + count - 1}"
        with translate_errors(key):
            response = self.client.get_object(
                Bucket=self.bucket, Key=key, VersionId=version_id, Range=which
            )
            return bytes(response["Body"].read())

    def put(self, key: str, body: bytes, *, content_type: str) -> str:
        with translate_errors(key):
            response = self.client.put_object(
                Bucket=self.bucket, Key=key, Body=body, ContentType=content_type
            )
        return str(response.get("VersionId", ""))

    def copy(self, source: StoredObject, target_key: str, keep_alive: Callable[[], None]) -> None:
        """Copy exactly that VersionId inside the store. Large objects are copied in parts, of which
        S3 answers each within seconds; `keep_alive` is called after each.
        """
        named = {"Bucket": self.bucket, "Key": source.key, "VersionId": source.version_id}
        with translate_errors(source.key):
            if source.size_bytes <= _LARGEST_SINGLE_COPY_BYTES:
                self.client.copy_object(Bucket=self.bucket, Key=target_key, CopySource=named)
            else:
                self._copy_in_parts(named, source.size_bytes, target_key, keep_alive)

    def list_keys(self, prefix: str) -> list[str]:
        """List the keys below the prefix that have a current version."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        with translate_errors(prefix):
            return [str(row["Key"]) for page in pages for row in page.get("Contents", [])]

    def list_newest(self, prefix: str) -> list[StoredObject]:
        """Return the newest version of each key, without deleted ones."""
        pages = self.client.get_paginator("list_object_versions").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        with translate_errors(prefix):
            rows = [row for page in pages for row in page.get("Versions", []) if row["IsLatest"]]
        objects = [
            StoredObject(row["Key"], str(row["VersionId"]), int(row["Size"]), str(row["ETag"]))
            for row in rows
        ]
        return sorted(objects, key=lambda item: item.key)

    def lock(self, objects: Sequence[StoredObject]) -> bool:
        """Place a legal hold on the objects. False if the bucket has no Object Lock."""
        return object_locks.lock(self.client, self.bucket, objects)

    def tag(self, item: StoredObject, tags: Mapping[str, str]) -> bool:
        """Replace the tags of exactly this VersionId. False if the store has no tags."""
        return object_tags.write(self.client, self.bucket, item, tags)

    def delete_all_versions(self, prefix: str) -> None:
        """Delete every version and delete marker under the prefix, permanently."""
        pages = self.client.get_paginator("list_object_versions").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        with translate_errors(prefix):
            objects = [
                {"Key": row["Key"], "VersionId": row["VersionId"]}
                for page in pages
                for row in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            ]
            for start in range(0, len(objects), _DELETE_BATCH):
                batch = objects[start : start + _DELETE_BATCH]
                object_locks.delete(self.client, self.bucket, batch)

    def _copy_in_parts(
        self,
        named: dict[str, str],
        size_bytes: int,
        target_key: str,
        keep_alive: Callable[[], None],
    ) -> None:
        response = self.client.create_multipart_upload(Bucket=self.bucket, Key=target_key)
        upload_id = response["UploadId"]
        parts = []
        for number, start in enumerate(range(0, size_bytes, _COPY_PART_BYTES), start=1):
            end = min(start + _COPY_PART_BYTES, size_bytes) - 1
            part = self.client.upload_part_copy(
                Bucket=self.bucket,
                Key=target_key,
                UploadId=upload_id,
                PartNumber=number,
                CopySource=named,
                CopySourceRange=f"bytes={start}-{end}",
            )
            etag = str(part["CopyPartResult"]["ETag"])
            parts.append(StoredPart(number, end + 1 - start, etag))
            keep_alive()
        self.complete_and_wait(target_key, upload_id, parts)


def store() -> ArtifactStore:
    """Return the configured store. Clients are made once per process and are safe to share by threads."""
    return s3_store()


def s3_store() -> S3Store:
    return _connect(
        settings.SLIPWAY_S3_BUCKET,
        settings.SLIPWAY_S3_REGION,
        settings.SLIPWAY_S3_ENDPOINT_URL,
        settings.SLIPWAY_S3_BROWSER_ENDPOINT_URL,
    )


@lru_cache(maxsize=8)
def _connect(bucket: str, region: str, endpoint: str, browser_endpoint: str) -> S3Store:
    return S3Store(
        bucket=bucket,
        client=_client(region, endpoint),
        browser_client=_client(region, browser_endpoint),
        completing_client=_client(region, endpoint, is_completing=True),
    )


@lru_cache(maxsize=8)
def _client(region: str, endpoint: str, *, is_completing: bool = False) -> Any:
    """Create a client for all buckets of a region or endpoint. Own endpoints are addressed by path; AWS by the
    bucket's host, which the CSP names.
    """
    style = "path" if endpoint else "virtual"
    config = Config(
        signature_version="s3v4",
        connect_timeout=5,
        read_timeout=multipart_completion.READ_TIMEOUT_SECONDS if is_completing else 60,
        retries={"mode": "standard", "total_max_attempts": 1 if is_completing else _ATTEMPTS},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": style, "us_east_1_regional_endpoint": "regional"},
    )
    return boto3.client("s3", region_name=region, endpoint_url=endpoint or None, config=config)
