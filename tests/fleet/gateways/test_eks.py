from __future__ import annotations

import base64
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
import time_machine

from fleet.gateways import eks
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
