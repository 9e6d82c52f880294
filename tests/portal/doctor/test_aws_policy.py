"""The policies that `manage.py aws_policy` prints are what the code calls: every AWS call in it is walked over."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.core.management import call_command

ROOT = Path(__file__).resolve().parents[3]
_SERVICES = ("s3", "eks", "sts", "iam", "ec2", "pricing")
_NAMED = {"get_paginator", "generate_presigned_url", "get_waiter"}
# Actions of S3 that are not named as their call; those of reading a version or a part are added.
_S3 = {
    "copy_object": {"s3:GetObject", "s3:GetObjectVersion", "s3:PutObject"},
    "complete_multipart_upload": {"s3:PutObject"},
    "create_multipart_upload": {"s3:PutObject"},
    "delete_objects": {"s3:DeleteObject", "s3:DeleteObjectVersion"},
    "get_bucket_encryption": {"s3:GetEncryptionConfiguration"},
    "get_bucket_lifecycle_configuration": {"s3:GetLifecycleConfiguration"},
    "get_bucket_cors": {"s3:GetBucketCORS"},
    "get_object": {"s3:GetObject", "s3:GetObjectVersion"},
    "get_object_lock_configuration": {"s3:GetBucketObjectLockConfiguration"},
    "head_bucket": {"s3:ListBucket"},
    "head_object": {"s3:GetObject", "s3:GetObjectVersion"},
    "list_multipart_uploads": {"s3:ListBucketMultipartUploads"},
    "list_object_versions": {"s3:ListBucketVersions"},
    "list_objects_v2": {"s3:ListBucket"},
    "list_parts": {"s3:ListMultipartUploadParts"},
    "put_object": {"s3:PutObject"},
    "put_object_tagging": {"s3:PutObjectVersionTagging"},
    "upload_part": {"s3:PutObject"},
    "upload_part_copy": {"s3:GetObject", "s3:GetObjectVersion", "s3:PutObject"},
}
# By `manage.py bucket_setup`, which an administrator runs.
_OF_ADMINISTRATORS = {
    "create_bucket",
    "put_bucket_cors",
    "put_bucket_lifecycle_configuration",
    "put_bucket_policy",
    "put_bucket_versioning",
    "put_object_lock_configuration",
}
_OPEN_TO_ALL = {"get_caller_identity"}
# A retention is an argument of put_object; Prometheus is asked over HTTP.
_WITHOUT_A_CALL = {"s3:PutObjectRetention", "aps:QueryMetrics"}
_EVERYTHING = (
    "--eks=arn:aws:eks:us-east-1:111122223333:cluster/prod",
    "--assume=arn:aws:iam::111122223333:role/prod",
    "--simulate=arn:aws:iam::111122223333:role/slipway",
    "--import=theirs",
    "--prometheus=arn:aws:aps:us-east-1:111122223333:workspace/ws-1",
)


@pytest.fixture(scope="module")
def operations() -> dict[str, str]:
    """IAM's usual name of each call of these services."""
    known: dict[str, str] = {}
    for service in _SERVICES:
        client = boto3.client(service, region_name="us-east-1")
        names = client.meta.method_to_api_mapping
        known |= {method: f"{service}:{operation}" for method, operation in names.items()}
    return known


def calls() -> Iterator[str]:
    """Names of methods, and of operations that paginators and signed addresses name."""
    for package in ("portal", "deployments", "fleet"):
        for path in (ROOT / package).rglob("*.py"):
            if "localcluster" in path.parts or "management" in path.parts:
                continue
            text = path.read_text()
            if "gateways" in path.parts or "boto3" in text:
                yield from _calls(ast.parse(text))


def _calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in _NAMED and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)
            elif "client" in ast.unparse(node.func.value).lower() or "sts" in ast.unparse(
                node.func
            ):
                yield name


def policy(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("aws_policy", "--bucket=models", *arguments, stdout=out)
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def test_the_portal_is_allowed_exactly_what_it_calls(operations: dict[str, str]) -> None:
    called = {name for name in calls() if name in operations}
    needed: set[str] = set()
    for name in called - _OF_ADMINISTRATORS - _OPEN_TO_ALL:
        needed |= _S3.get(name, {operations[name]})

    allowed = {
        action
        for statement in policy("portal", *_EVERYTHING)["Statement"]
        for action in statement["Action"]
    }

    assert len(called) > 25
    assert called >= _OF_ADMINISTRATORS
    assert allowed == needed | _WITHOUT_A_CALL


def test_nothing_is_allowed_on_all_of_s3_and_what_is_not_used_is_left_out() -> None:
    statements = policy("portal")["Statement"]

    assert [row["Sid"] for row in statements] == ["Bucket", "Objects", "Anchors", "Prices"]
    for row in statements:
        if row["Sid"] != "Prices":
            assert all(name.startswith("arn:aws:s3:::models") for name in row["Resource"])
    assert "arn:aws:s3:::models/*" not in {name for row in statements for name in row["Resource"]}
    assert not any("*" in action for row in statements for action in row["Action"])


def test_a_teams_pods_read_its_own_models_only() -> None:
    read, listing = policy("serving", "vision")["Statement"]

    assert read["Action"] == ["s3:GetObject"]
    assert read["Resource"] == ["arn:aws:s3:::models/repositories/vision/*"]
    assert listing["Condition"] == {"StringLike": {"s3:prefix": "repositories/vision/*"}}
