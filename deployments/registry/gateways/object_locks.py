"""S3 Object Lock: a legal hold on the objects of a serving repository, released only by the portal."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from deployments.registry.gateways.object_store_errors import (
    ArtifactError,
    StoreRefused,
    translate_errors,
)
from deployments.registry.gateways.object_store_types import StoredObject

_ON: Final = {"Status": "ON"}
_OFF: Final = {"Status": "OFF"}
# Error codes for a bucket without Object Lock, and statuses of stores that do not support it.
_NO_LOCK_CODES: Final = (
    "ObjectLockConfigurationNotFoundError",
    "InvalidRequest",
    "NoSuchObjectLockConfiguration",
)
_UNSUPPORTED_STATUSES: Final = (405, 501)


def is_on(client: Any, bucket: str) -> bool:
    try:
        with translate_errors(bucket):
            response = client.get_object_lock_configuration(Bucket=bucket)
    except ArtifactError as error:
        if _is_unsupported(error):
            return False
        raise
    configuration = response.get("ObjectLockConfiguration", {})
    return bool(configuration.get("ObjectLockEnabled") == "Enabled")


def lock(client: Any, bucket: str, objects: Sequence[StoredObject]) -> bool:
    if not is_on(client, bucket):
        return False
    for item in objects:
        _set(client, bucket, item.key, item.version_id, _ON)
    return True


def delete(client: Any, bucket: str, objects: Sequence[dict[str, str]]) -> None:
    """Delete objects, releasing legal holds first. Raises StoreRefused if any remains."""
    refused = _delete(client, bucket, objects)
    for item in refused:
        # A delete marker has no legal hold and may not exist any more.
        with contextlib.suppress(ArtifactError):
            _set(client, bucket, item["Key"], item["VersionId"], _OFF)
    remaining = _delete(client, bucket, refused) if refused else []
    if remaining:
        raise StoreRefused(f"{remaining[0]['Key']}: the store does not delete all of its versions")


def _delete(client: Any, bucket: str, objects: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Delete objects and return those that were not deleted. Not every store reports which version of a key
    failed.
    """
    response = client.delete_objects(
        Bucket=bucket, Delete={"Objects": list(objects), "Quiet": True}
    )
    keys = {row["Key"] for row in response.get("Errors", [])}
    return [row for row in objects if row["Key"] in keys]


def _set(client: Any, bucket: str, key: str, version_id: str, hold: dict[str, str]) -> None:
    with translate_errors(key):
        client.put_object_legal_hold(Bucket=bucket, Key=key, VersionId=version_id, LegalHold=hold)


def _is_unsupported(error: ArtifactError) -> bool:
    cause = error.__cause__
    if not isinstance(cause, ClientError):
        return False
    status = cause.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return (
        cause.response.get("Error", {}).get("Code") in _NO_LOCK_CODES
        or status in _UNSUPPORTED_STATUSES
    )
