"""S3 Object Lock: what was laid out for serving is held until the portal itself lets go of it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from deployments.registry.gateways.object_store_errors import (
    ArtifactError,
    StoreRefused,
    translated,
)
from deployments.registry.gateways.object_store_types import StoredObject

_ON: Final = {"Status": "ON"}
_OFF: Final = {"Status": "OFF"}
# How stores say that a bucket has no Object Lock, or by their status that they know of none.
_NO_LOCK: Final = (
    "ObjectLockConfigurationNotFoundError",
    "InvalidRequest",
    "NoSuchObjectLockConfiguration",
)
_NOT_KNOWN: Final = (405, 501)


def is_on(client: Any, bucket: str) -> bool:
    try:
        with translated(bucket):
            answer = client.get_object_lock_configuration(Bucket=bucket)
    except ArtifactError as error:
        if _has_none(error):
            return False
        raise
    found = answer.get("ObjectLockConfiguration", {})
    return bool(found.get("ObjectLockEnabled") == "Enabled")


def hold(client: Any, bucket: str, objects: Sequence[StoredObject]) -> bool:
    if not is_on(client, bucket):
        return False
    for one in objects:
        _set(client, bucket, one.key, one.version_id, _ON)
    return True


def delete(client: Any, bucket: str, found: Sequence[dict[str, str]]) -> None:
    """Those that are held are let go of first. Raises StoreRefused for what stays all the same."""
    kept = _delete(client, bucket, found)
    for one in kept:
        # A delete marker of the same key is never held, and may be gone by now.
        with contextlib.suppress(ArtifactError):
            _set(client, bucket, one["Key"], one["VersionId"], _OFF)
    left = _delete(client, bucket, kept) if kept else []
    if left:
        raise StoreRefused(f"{left[0]['Key']}: the store does not delete all of its versions")


def _delete(client: Any, bucket: str, found: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """What was refused; not every store says which version of a key it was."""
    answer = client.delete_objects(Bucket=bucket, Delete={"Objects": list(found), "Quiet": True})
    keys = {row["Key"] for row in answer.get("Errors", [])}
    return [row for row in found if row["Key"] in keys]


def _set(client: Any, bucket: str, key: str, version_id: str, hold: dict[str, str]) -> None:
    with translated(key):
        client.put_object_legal_hold(Bucket=bucket, Key=key, VersionId=version_id, LegalHold=hold)


def _has_none(error: ArtifactError) -> bool:
    cause = error.__cause__
    if not isinstance(cause, ClientError):
        return False
    status = cause.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return cause.response.get("Error", {}).get("Code") in _NO_LOCK or status in _NOT_KNOWN
