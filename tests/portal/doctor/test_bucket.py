"""The bucket on a real S3 server: each setting that is missing has its line, and the role's excess too."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from deployments.registry.gateways import bucket_setup, object_store, role_limits
from deployments.registry.gateways.object_store import S3Store
from portal.doctor.lines import Status
from tests.fixtures.s3 import PORTAL_ORIGIN
from tests.portal.doctor.conftest import Doctor, failing

_ROLE = "arn:aws:iam::111122223333:role/slipway"


@pytest.fixture
def bucket(s3_store: S3Store, settings: Any) -> S3Store:
    settings.SLIPWAY_PUBLIC_URL = PORTAL_ORIGIN
    bucket_setup.protect(s3_store, writers=[_ROLE])
    return s3_store


def test_a_bucket_that_is_well(doctor: Doctor, bucket: S3Store) -> None:
    lines = doctor("bucket")

    assert {name: line.status for name, line in lines.items()} == {
        "Objects": Status.OK,
        "Versions": Status.OK,
        "Uploads from browsers": Status.OK,
        "Abandoned uploads": Status.OK,
        "Object Lock": Status.OK,
        "Bucket policy": Status.OK,
        "Encryption": lines["Encryption"].status,
        "Least privilege": Status.UNKNOWN,
    }
    assert object_store.s3_store().list_newest("uploads/doctor/") == []


def test_versions_that_are_not_kept(doctor: Doctor, bucket: S3Store) -> None:
    suspended = {"Status": "Suspended"}
    bucket.client.put_bucket_versioning(Bucket=bucket.bucket, VersioningConfiguration=suspended)

    line = doctor("bucket")["Versions"]

    assert line.status is Status.FAILED
    assert f"bucket_setup --origin {PORTAL_ORIGIN}" in line.fix


def test_another_origin_than_the_portals_may_upload(
    doctor: Doctor, bucket: S3Store, settings: Any
) -> None:
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"

    line = doctor("bucket")["Uploads from browsers"]

    assert (line.status, line.detail) == (
        Status.FAILED,
        "not allowed: https://slipway.example.org",
    )


def test_abandoned_uploads_are_kept_and_anyone_may_write(doctor: Doctor, bucket: S3Store) -> None:
    bucket.client.delete_bucket_lifecycle(Bucket=bucket.bucket)
    bucket.client.delete_bucket_policy(Bucket=bucket.bucket)

    lines = doctor("bucket")

    assert lines["Abandoned uploads"].status is Status.NOTE
    assert lines["Bucket policy"].status is Status.NOTE
    assert not failing(lines)


def test_a_bucket_that_is_not_there(doctor: Doctor, s3_server: str, settings: Any) -> None:
    settings.SLIPWAY_S3_ENDPOINT_URL = s3_server
    settings.SLIPWAY_S3_BUCKET = "nobodys-bucket"

    lines = doctor("bucket")

    assert {"Objects", "Versions"} <= failing(lines)
    assert "NoSuchBucket" in lines["Objects"].detail
    assert "SLIPWAY_S3_BUCKET" in lines["Objects"].fix


def test_browsers_do_not_upload_to_plain_http(
    doctor: Doctor, bucket: S3Store, settings: Any
) -> None:
    settings.SLIPWAY_HTTPS = True

    assert doctor("bucket")["Browsers"].status is Status.FAILED


class Iam:
    """Allows `allowed`; refuses to simulate when that is None."""

    def __init__(self, allowed: set[str] | None) -> None:
        self.allowed = allowed
        self.requests: list[dict[str, Any]] = []

    def simulate_principal_policy(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        if self.allowed is None:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "SimulatePrincipalPolicy")
        rows = [
            {
                "EvalActionName": name,
                "EvalDecision": "allowed" if name in self.allowed else "implicitDeny",
            }
            for name in request["ActionNames"]
        ]
        return {"EvaluationResults": rows}

    def get_caller_identity(self) -> dict[str, str]:
        return {"Arn": "arn:aws:sts::111122223333:assumed-role/slipway/pod-1"}


@pytest.mark.parametrize(
    ("allowed", "status", "detail"),
    [
        (set(), Status.OK, "cannot switch off"),
        (
            {"s3:PutBucketPolicy", "s3:DeleteBucket"},
            Status.FAILED,
            "s3:DeleteBucket, s3:PutBucketPolicy",
        ),
        (None, Status.UNKNOWN, "AccessDenied"),
    ],
)
def test_what_the_role_may_not_do_is_looked_up_in_iam(
    doctor: Doctor,
    bucket: S3Store,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    allowed: set[str] | None,
    status: Status,
    detail: str,
) -> None:
    iam = Iam(allowed)
    monkeypatch.setattr(role_limits, "_iam", lambda: iam)
    monkeypatch.setattr(role_limits, "_sts", lambda: iam)
    name, settings.SLIPWAY_S3_ENDPOINT_URL = bucket.bucket, ""
    monkeypatch.setattr(object_store, "s3_store", lambda: bucket)

    line = doctor("bucket")["Least privilege"]

    assert line.status is status
    assert detail in line.detail
    assert iam.requests[0]["PolicySourceArn"] == _ROLE
    assert iam.requests[0]["ResourceArns"] == [f"arn:aws:s3:::{name}"]
