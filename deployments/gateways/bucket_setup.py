"""Make the bucket fit for the registry: versions kept, the portal's origin let in, leftovers removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deployments.gateways.artifact_errors import ArtifactError, ObjectMissing, translated
from deployments.gateways.artifacts import S3Store

_ABANDONED_DAYS = 2


def prepare(store: S3Store, *, region: str, origins: Sequence[str]) -> None:
    """Safe to repeat. `origins` are the portal's own, as the browser names them."""
    client, bucket = store.client, store.bucket
    with translated(bucket):
        if not _exists(client, bucket):
            where = {} if region == "us-east-1" else _location(region)
            client.create_bucket(Bucket=bucket, **where)
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        client.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [_rule(origins)]})
        client.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration={"Rules": [_abandoned_uploads()]}
        )


def _exists(client: Any, bucket: str) -> bool:
    try:
        with translated(bucket):
            client.head_bucket(Bucket=bucket)
    except ObjectMissing:
        return False
    except ArtifactError as error:
        if "NoSuchBucket" in str(error):
            return False
        raise
    return True


def _location(region: str) -> dict[str, Any]:
    return {"CreateBucketConfiguration": {"LocationConstraint": region}}


def _rule(origins: Sequence[str]) -> dict[str, Any]:
    return {
        "AllowedMethods": ["PUT"],
        "AllowedOrigins": list(origins),
        "AllowedHeaders": ["content-type", "x-amz-checksum-sha256"],
        "MaxAgeSeconds": 3600,
    }


def _abandoned_uploads() -> dict[str, Any]:
    """The portal aborts uploads itself; this catches one that was begun just as the portal died."""
    return {
        "ID": "abort-abandoned-uploads",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _ABANDONED_DAYS},
    }
