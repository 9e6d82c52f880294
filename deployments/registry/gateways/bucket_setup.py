"""Set up the bucket for the registry, and check the result.

Versioning, CORS for the portal's origin, cleanup of abandoned uploads, Object Lock, and a policy
that only the portal writes to serving repositories. Features that a store lacks are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.registry.domain import object_keys
from deployments.registry.gateways import bucket_policy, object_locks
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.gateways.object_store_errors import (
    ArtifactError,
    ObjectMissing,
    translate_errors,
)

_ABANDONED_DAYS: Final = 2
_ABANDONED: Final = "abort-abandoned-uploads"
_NO_WRITER: Final = "not set: pass the portal's own role with --writer"


@dataclass(frozen=True, slots=True)
class BucketFinding:
    """The finding of a check of the bucket. `ok` None: not requested, or the store does not report it."""

    name: str
    ok: bool | None
    detail: str


def prepare(store: S3Store, *, region: str, origins: Sequence[str]) -> None:
    """Prepare the bucket for uploads. Safe to repeat. `origins` are the portal's own, as the browser names them."""
    client, bucket = store.client, store.bucket
    with translate_errors(bucket):
        if not _exists(client, bucket):
            _create(client, bucket, region)
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        client.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [_rule(origins)]})
        client.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration={"Rules": [_abandoned_uploads()]}
        )


def protect(store: S3Store, *, writers: Sequence[str]) -> list[BucketFinding]:
    """Set Object Lock, and the policy where the portal's own roles are named. Safe to repeat. Returns what the
    store refused.
    """
    client, bucket = store.client, store.bucket
    steps: list[tuple[str, Callable[[], None]]] = [
        ("Object Lock", lambda: bucket_policy.lock(client, bucket))
    ]
    if writers:
        steps.append(("Bucket policy", lambda: bucket_policy.write(client, bucket, writers)))
    refused = []
    for name, step in steps:
        try:
            step()
        except ArtifactError as error:
            refused.append(BucketFinding(name, ok=False, detail=f"the store refused it: {error}"))
    return refused


def check(store: S3Store, *, origins: Sequence[str], writers: Sequence[str]) -> list[BucketFinding]:
    """Read the current settings of the bucket, without changes."""
    client, bucket = store.client, store.bucket
    return [
        _run_check("Versions", lambda: _versions(client, bucket)),
        _run_check("Uploads from browsers", lambda: _origins(client, bucket, origins)),
        _run_check("Abandoned uploads", lambda: _abandoned_upload_rule(client, bucket)),
        _run_check("Object Lock", lambda: _lock(client, bucket)),
        _run_check("Bucket policy", lambda: _policy(client, bucket, writers)),
    ]


def _run_check(name: str, read: Callable[[], tuple[bool | None, str]]) -> BucketFinding:
    try:
        ok, detail = read()
    except ArtifactError as error:
        return BucketFinding(name, ok=False, detail=f"could not be read: {error}")
    return BucketFinding(name, ok, detail)


def _versions(client: Any, bucket: str) -> tuple[bool, str]:
    with translate_errors(bucket):
        status = client.get_bucket_versioning(Bucket=bucket).get("Status", "")
    is_on = status == "Enabled"
    return is_on, "kept" if is_on else "disabled, so approved files cannot be identified"


def _origins(client: Any, bucket: str, origins: Sequence[str]) -> tuple[bool, str]:
    with translate_errors(bucket):
        rules = client.get_bucket_cors(Bucket=bucket)["CORSRules"]
    allowed = {
        origin
        for rule in rules
        if "PUT" in rule["AllowedMethods"]
        for origin in rule["AllowedOrigins"]
    }
    if "*" in allowed:
        return False, "any site can upload parts"
    missing = sorted(set(origins) - allowed)
    if missing:
        return False, f"not allowed: {', '.join(missing)}"
    return True, f"allowed: {', '.join(sorted(allowed))}"


def _abandoned_upload_rule(client: Any, bucket: str) -> tuple[bool, str]:
    with translate_errors(bucket):
        rules = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    is_enabled = any(
        rule.get("ID") == _ABANDONED and rule.get("Status") == "Enabled" for rule in rules
    )
    detail = f"removed after {_ABANDONED_DAYS} days" if is_enabled else "kept forever and billed"
    return is_enabled, detail


def _lock(client: Any, bucket: str) -> tuple[bool, str]:
    if object_locks.is_on(client, bucket):
        return True, f"objects under {object_keys.REPOSITORIES} are locked"
    return False, "off: anyone who can delete in the bucket can remove approved files"


def _policy(client: Any, bucket: str, writers: Sequence[str]) -> tuple[bool | None, str]:
    statements = [
        statement
        for statement in bucket_policy.read(client, bucket)
        if statement.get("Sid") == bucket_policy.SID
    ]
    if not writers:
        return (None, _NO_WRITER) if not statements else (None, "set; pass --writer to compare it")
    if statements == [bucket_policy.statement(bucket, writers)]:
        return True, f"only {', '.join(sorted(writers))} may write under {object_keys.REPOSITORIES}"
    return False, "differs from the policy that this portal sets" if statements else "not set"


def _exists(client: Any, bucket: str) -> bool:
    try:
        with translate_errors(bucket):
            client.head_bucket(Bucket=bucket)
    except ObjectMissing:
        return False
    except ArtifactError as error:
        if "NoSuchBucket" in str(error):
            return False
        raise
    return True


def _create(client: Any, bucket: str, region: str) -> None:
    """Create the bucket with Object Lock, which some stores only enable at creation; without it if
    not supported.
    """
    options = {} if region == "us-east-1" else _location(region)
    try:
        with translate_errors(bucket):
            client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True, **options)
    except ArtifactError:
        client.create_bucket(Bucket=bucket, **options)


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
    """Abort uploads that the portal did not abort because it crashed."""
    return {
        "ID": _ABANDONED,
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _ABANDONED_DAYS},
    }
