"""Anchors in the object store, where the owner of the database cannot change them. The only S3 client of
the trail; every call has a timeout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings

from portal.core import network_failures

PREFIX: Final = "audit/anchors/"
_NO_LOCK_CODES: Final = (
    "ObjectLockConfigurationNotFoundError",
    "InvalidRequest",
    "NoSuchObjectLockConfiguration",
)
_UNSUPPORTED_STATUSES: Final = (405, 501)


class AnchorStoreError(Exception):
    """The store did not respond or refused; the message names the bucket."""


def has_lock() -> bool:
    try:
        response = _client().get_object_lock_configuration(Bucket=settings.SLIPWAY_S3_BUCKET)
    except ClientError as error:
        if _is_unsupported(error):
            return False
        raise AnchorStoreError(
            f"{settings.SLIPWAY_S3_BUCKET}: {network_failures.describe(error)}"
        ) from error
    except BotoCoreError as error:
        raise AnchorStoreError(
            f"{settings.SLIPWAY_S3_BUCKET}: {network_failures.describe(error)}"
        ) from error
    enabled = response.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled")
    return bool(enabled == "Enabled")


def put(key: str, body: bytes, *, locked_until: datetime | None) -> str:
    """Write the object and return its VersionId. Nobody can delete that version before `locked_until`."""
    lock: dict[str, Any] = {}
    if locked_until:
        lock = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": locked_until}
    with _translated():
        response = _client().put_object(
            Bucket=settings.SLIPWAY_S3_BUCKET,
            Key=key,
            Body=body,
            ContentType="application/json",
            ChecksumAlgorithm="SHA256",
            **lock,
        )
    return str(response.get("VersionId", ""))


def read_all() -> set[tuple[str, bytes]]:
    """Read the keys and bytes of every version of every anchor, including those that a newer version or a delete
    marker hides: whoever adds a version does not replace one.
    """
    bucket, client = settings.SLIPWAY_S3_BUCKET, _client()
    with _translated():
        pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=PREFIX)
        named = [
            {"Key": str(row["Key"]), "VersionId": str(row["VersionId"])}
            for page in pages
            for row in page.get("Versions", [])
        ]
        return {
            (name["Key"], bytes(client.get_object(Bucket=bucket, **name)["Body"].read()))
            for name in named
        }


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise AnchorStoreError(
            f"{settings.SLIPWAY_S3_BUCKET}: {network_failures.describe(error)}"
        ) from error


def _is_unsupported(error: ClientError) -> bool:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    code = error.response.get("Error", {}).get("Code")
    return code in _NO_LOCK_CODES or status in _UNSUPPORTED_STATUSES


def _client() -> Any:
    return _connect(settings.SLIPWAY_S3_REGION, settings.SLIPWAY_S3_ENDPOINT_URL)


@lru_cache(maxsize=8)
def _connect(region: str, endpoint: str) -> Any:
    config = Config(
        signature_version="s3v4",
        connect_timeout=5,
        read_timeout=30,
        retries={"mode": "standard", "total_max_attempts": 3},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if endpoint else "virtual"},
    )
    return boto3.client("s3", region_name=region, endpoint_url=endpoint or None, config=config)
