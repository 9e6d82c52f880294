from __future__ import annotations

import base64
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
import time_machine
from botocore.exceptions import ClientError
from moto import mock_aws

from fleet.kube.gateways import eks
from tests.fleet.objects import START


def session() -> boto3.session.Session:
    return boto3.session.Session("AKIDEXAMPLE", "secret", region_name="eu-west-1")


def test_token_is_a_presigned_url_that_signs_the_clusters_name() -> None:
    token = eks.TokenCache("prod", "eu-west-1", session()).get()

    prefix, _, encoded = token.partition(".")
    url = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
    query = parse_qs(url.query)
    assert prefix == "k8s-aws-v1"
    assert "=" not in token
    assert url.netloc == "sts.eu-west-1.amazonaws.com"
    assert query["Action"] == ["GetCallerIdentity"]
    assert "x-k8s-aws-id" in query["X-Amz-SignedHeaders"][0]


def test_token_is_kept_for_fourteen_minutes() -> None:
    tokens = eks.TokenCache("prod", "eu-west-1", session())

    with time_machine.travel(START, tick=False) as traveller:
        first = tokens.get()
        traveller.move_to(START + timedelta(minutes=13, seconds=59))
        assert tokens.get() == first
        traveller.move_to(START + timedelta(minutes=14))
        assert tokens.get() != first


def test_portal_without_aws_credentials_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")

    with pytest.raises(eks.EksUnavailable, match="no AWS credentials"):
        eks.TokenCache("prod", "eu-west-1").get()


def test_role_is_assumed_and_signs_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    role = "arn:aws:iam::123456789012:role/slipway"
    with mock_aws():
        token = eks.TokenCache("prod", "eu-west-1", role_arn=role).get()

    encoded = token.partition(".")[2]
    url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    signed_by = parse_qs(urlsplit(url).query)["X-Amz-Credential"][0]
    assert signed_by.startswith("ASIA")


def test_role_that_may_not_be_assumed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: object, operation: str, _arguments: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no trust"}}, operation)

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", refuse)

    with pytest.raises(eks.EksUnavailable, match="sts:AssumeRole arn:aws:iam::1:role/x failed"):
        eks.describe("prod", "eu-west-1", "arn:aws:iam::1:role/x")
