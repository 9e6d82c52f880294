"""Make serving repositories immutable: a bucket policy that only allows the portal to write, and Object Lock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from deployments.registry.domain import object_keys
from deployments.registry.gateways import object_locks
from deployments.registry.gateways.object_store_errors import ArtifactError, translate_errors

SID: Final = "OnlySlipwayWritesWhatIsServed"
_WRITES: Final = (
    "s3:BypassGovernanceRetention",
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",
    "s3:PutObject",
    "s3:PutObjectLegalHold",
    "s3:PutObjectRetention",
    "s3:ReplicateDelete",
    "s3:ReplicateObject",
)


def statement(bucket: str, writers: Sequence[str]) -> dict[str, Any]:
    """Return the statement that denies writes to everyone but `writers`, the ARNs of the portal's own roles or
    users. Reads are not restricted.
    """
    return {
        "Sid": SID,
        "Effect": "Deny",
        "Principal": "*",
        "Action": list(_WRITES),
        "Resource": f"arn:aws:s3:::{bucket}/{object_keys.REPOSITORIES}*",
        "Condition": {"ArnNotLike": {"aws:PrincipalArn": sorted(writers)}},
    }


def write(client: Any, bucket: str, writers: Sequence[str]) -> None:
    """Add or replace our statement; keep others."""
    others = [other for other in read(client, bucket) if other.get("Sid") != SID]
    policy = {"Version": "2012-10-17", "Statement": [*others, statement(bucket, writers)]}
    with translate_errors(bucket):
        client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))


def read(client: Any, bucket: str) -> list[dict[str, Any]]:
    try:
        with translate_errors(bucket):
            response = client.get_bucket_policy(Bucket=bucket)
    except ArtifactError as error:
        if _code_of(error) == "NoSuchBucketPolicy":
            return []
        raise
    statements = json.loads(response["Policy"])["Statement"]
    return list(statements) if isinstance(statements, list) else [statements]


def lock(client: Any, bucket: str) -> None:
    """Enable Object Lock without default retention: the portal locks individual objects."""
    if object_locks.is_on(client, bucket):
        return
    with translate_errors(bucket):
        client.put_object_lock_configuration(
            Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"}
        )


def _code_of(error: ArtifactError) -> str:
    cause = error.__cause__
    if not isinstance(cause, ClientError):
        return ""
    return str(cause.response.get("Error", {}).get("Code", ""))
