"""CompleteMultipartUpload, sent once. A store may take minutes to join the parts of a large file.

A request that is repeated while the first one still runs makes the store join the parts twice, or
refuses an upload that is about to exist. So it is never repeated without looking for the object.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from deployments.registry.gateways.object_store_errors import (
    ObjectMissing,
    StillAssembling,
    StoreUnreachable,
    translate_errors,
)
from deployments.registry.gateways.object_store_types import StoredPart

# Below the 30 seconds after which clients of the portal's API give up waiting for an answer.
READ_TIMEOUT_SECONDS: Final = 20
_LEAST: Final = timedelta(seconds=60)
_SLOWEST_BYTES_PER_SECOND: Final = 20 * 2**20
_PAUSE_SECONDS: Final = 2.0
_NEVER_SET: Final = threading.Event()
# What a proxy before the store, or the store itself, answers while the request may still run.
_TIMED_OUT: Final = frozenset({408, 502, 504})


def assemble_within(size_bytes: int) -> timedelta:
    """Return how long a store may take to join the parts of so many bytes."""
    return _LEAST + timedelta(seconds=size_bytes / _SLOWEST_BYTES_PER_SECOND)


def complete(
    client: Any, bucket: str, key: str, upload_id: str, parts: Sequence[StoredPart]
) -> str:
    """Complete an upload and return the VersionId of the object. `client` must not retry. Raises
    StillAssembling if the answer did not come: the store may be at work.
    """
    manifest = [
        {"PartNumber": part.number, "ETag": part.etag}
        | ({"ChecksumSHA256": part.sha256_base64} if part.sha256_base64 else {})
        for part in parts
    ]
    try:
        with translate_errors(key):
            response = client.complete_multipart_upload(
                Bucket=bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": manifest}
            )
    except StoreUnreachable as error:
        if _may_be_running(error.__cause__):
            raise StillAssembling(str(error)) from error
        raise
    return str(response.get("VersionId", ""))


def wait_for(
    complete_upload: Callable[[], str],
    newest_version: Callable[[], str],
    *,
    size_bytes: int,
    pause: Callable[[float], object] = _NEVER_SET.wait,
) -> str:
    """Return the VersionId that `complete_upload` makes, even if its answer never comes.

    Blocks for up to `assemble_within`; for workers. `newest_version` gives the VersionId of the key's
    newest object and raises ObjectMissing. Raises StillAssembling at the end.
    """
    before = _version_or_none(newest_version)
    try:
        return complete_upload()
    except StillAssembling:
        for _ in range(math.ceil(assemble_within(size_bytes).total_seconds() / _PAUSE_SECONDS)):
            now = _version_or_none(newest_version)
            if now not in (None, before):
                return str(now)
            pause(_PAUSE_SECONDS)
        raise


def _version_or_none(newest_version: Callable[[], str]) -> str | None:
    try:
        return newest_version()
    except ObjectMissing:
        return None


def _may_be_running(cause: BaseException | None) -> bool:
    if isinstance(cause, ClientError):
        status = cause.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status in _TIMED_OUT
    return isinstance(cause, ReadTimeoutError | ConnectionClosedError)
