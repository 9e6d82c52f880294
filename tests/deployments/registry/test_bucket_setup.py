"""What `manage.py bucket_setup` sets in a bucket, what it finds there, and what a store refuses."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from django.core.management import CommandError, call_command

from deployments.registry.gateways import bucket_policy, bucket_setup, object_locks, object_store
from deployments.registry.gateways.object_store import S3Store, StoredObject

ORIGIN = "https://slipway.example.org"
PORTAL = "arn:aws:iam::111122223333:role/slipway"


def run(*arguments: str) -> list[str]:
    out = io.StringIO()
    call_command("bucket_setup", f"--origin={ORIGIN}", *arguments, stdout=out)
    return out.getvalue().splitlines()


def put(store: S3Store, key: str = "repositories/vision/detector/1/ab/model") -> StoredObject:
    store.put(key, b"bytes", content_type="application/octet-stream")
    return store.head(key)


def test_everything_is_set_then_confirmed(s3_store: S3Store) -> None:
    lines = run(f"--writer={PORTAL}")

    assert lines == [
        "ok      Versions: kept",
        f"ok      Uploads from browsers: allowed: {ORIGIN}",
        "ok      Abandoned uploads: removed after 2 days",
        "ok      Object Lock: objects under repositories/ are locked",
        f"ok      Bucket policy: only {PORTAL} may write under repositories/",
        f"Bucket {s3_store.bucket} is ready for uploads.",
    ]
    assert run(f"--writer={PORTAL}", "--check") == lines


def test_the_policy_denies_everyone_else_and_keeps_what_others_wrote(s3_store: S3Store) -> None:
    other = {"Sid": "Theirs", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "x"}
    policy = {"Version": "2012-10-17", "Statement": [other]}
    s3_store.client.put_bucket_policy(Bucket=s3_store.bucket, Policy=json.dumps(policy))

    run(f"--writer={PORTAL}")
    run(f"--writer={PORTAL}")

    theirs, ours = bucket_policy.read(s3_store.client, s3_store.bucket)
    assert theirs == other
    assert ours["Effect"] == "Deny"
    assert ours["Resource"] == f"arn:aws:s3:::{s3_store.bucket}/repositories/*"
    assert ours["Condition"] == {"ArnNotLike": {"aws:PrincipalArn": [PORTAL]}}
    assert {"s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"} <= set(ours["Action"])


def test_what_does_not_hold_fails_the_check_and_changes_nothing(s3_store: S3Store) -> None:
    client, bucket = s3_store.client, s3_store.bucket
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})

    with pytest.raises(CommandError) as refusal:
        run(f"--writer={PORTAL}", "--check")

    assert str(refusal.value) == (
        f"Bucket {bucket}: Versions, Uploads from browsers, Bucket policy not set up correctly."
    )
    assert bucket_policy.read(client, bucket) == []


def test_a_policy_for_another_writer_is_not_this_portals(s3_store: S3Store) -> None:
    run(f"--writer={PORTAL}")

    with pytest.raises(CommandError, match="Bucket policy not set up correctly"):
        run("--writer=arn:aws:iam::111122223333:role/other", "--check")


def test_without_a_writer_the_policy_is_said_to_be_missing(s3_store: S3Store) -> None:
    lines = run()

    assert "-       Bucket policy: not set: pass the portal's own role with --writer" in lines


class WithoutLock:
    """A store that has no Object Lock, as several that speak S3."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return self._refuse if "object_lock" in name else getattr(self._client, name)

    def _refuse(self, **named: Any) -> None:
        answer = {
            "Error": {"Code": "NotImplemented", "Message": "no"},
            "ResponseMetadata": {"HTTPStatusCode": 501},
        }
        raise ClientError(answer, "PutObjectLockConfiguration")


def test_a_store_without_object_lock_is_reported_and_still_serves(
    s3_store: S3Store,
) -> None:
    client = WithoutLock(s3_store.client)
    old = S3Store(
        bucket=s3_store.bucket, client=client, browser_client=client, completing_client=client
    )

    bucket_setup.prepare(old, region="us-east-1", origins=[ORIGIN])
    [refused] = bucket_setup.protect(old, writers=[])

    assert (refused.name, refused.ok) == ("Object Lock", False)
    assert refused.detail.startswith("the store refused it: ")
    checks = {
        result.name: result.ok for result in bucket_setup.check(old, origins=[ORIGIN], writers=[])
    }
    assert checks["Object Lock"] is False
    assert old.lock([put(old)]) is False


def test_objects_under_legal_hold_are_removed_by_the_portal_only(s3_store: S3Store) -> None:
    one = put(s3_store)
    assert s3_store.lock([one]) is True
    client, bucket = s3_store.client, s3_store.bucket
    assert object_locks.is_on(client, bucket)

    with pytest.raises(client.exceptions.ClientError, match="AccessDenied"):
        client.delete_object(Bucket=bucket, Key=one.key, VersionId=one.version_id)

    assert s3_store.head(one.key).version_id == one.version_id
    s3_store.delete_all_versions(one.key)
    with pytest.raises(object_store.ObjectMissing):
        s3_store.head(one.key, one.version_id)


def test_the_newest_of_each_key_is_listed_without_what_is_deleted(s3_store: S3Store) -> None:
    first, second = put(s3_store, "p/a"), put(s3_store, "p/a")
    put(s3_store, "p/b")
    s3_store.client.delete_object(Bucket=s3_store.bucket, Key="p/b")
    third = put(s3_store, "p/c")

    assert first.version_id != second.version_id
    assert s3_store.list_newest("p/") == [second, third]
