"""Amazon Managed Prometheus: a server that makes each signature again, as AWS does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import boto3
import pytest
import time_machine
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from fleet.clusters.domain.prometheus import (
    Endpoint,
    PrometheusDenied,
    PrometheusSample,
    QueryResult,
    Signing,
    signing_for,
)
from fleet.clusters.gateways import prometheus as gateway
from fleet.clusters.services import clusters, prometheus
from fleet.kube.gateways import eks, sigv4
from portal.accounts.policy import SYSTEM
from tests.fleet.prometheus_servers import Server, draft, run_query

KEYS = ("AKIDEXAMPLE", "wJalrXUtnFEMI", "a-session-token")
ROLE = "arn:aws:iam::123456789012:role/slipway"


def is_signed(request: BaseHTTPRequestHandler, body: bytes, *, secret: str = KEYS[1]) -> int:
    """What AWS does: the signature is made again of what arrived."""
    sent = request.headers
    _, _, rest = sent["Authorization"].partition("Credential=")
    scope, _, rest = rest.partition(", SignedHeaders=")
    names, _, signature = rest.partition(", Signature=")
    _, _, region, service, _ = scope.split("/")
    again = AWSRequest(
        method=request.command,
        url=f"http://{sent['Host']}{request.path}",
        data=body,
        headers={name: sent[name] for name in names.split(";") if name != "host"},
    )
    again.context["timestamp"] = sent["X-Amz-Date"]
    auth = SigV4Auth(Credentials(KEYS[0], secret, KEYS[2]), service, region)
    made = auth.signature(auth.string_to_sign(again, auth.canonical_request(again)), again)
    is_right = made == signature and (service, region) == ("aps", "eu-west-1")
    return 200 if is_right and sent["X-Amz-Security-Token"] == KEYS[2] else 403


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Which roles were assumed, in the place of STS."""
    assumed: list[tuple[str, str]] = []

    def session_for(region: str, role_arn: str) -> Any:
        assumed.append((region, role_arn))
        return boto3.session.Session(*KEYS, region_name=region)

    monkeypatch.setattr(eks, "session_for", session_for)
    monkeypatch.setattr(sigv4, "_sessions", {})
    return assumed


def test_requests_are_signed_with_the_clusters_role_and_the_role_is_kept_a_while(
    sessions: list[tuple[str, str]],
) -> None:
    server = Server(is_signed)
    endpoint = Endpoint(f"{server.url}/workspaces/ws-1", signing=Signing("eu-west-1", ROLE))

    with time_machine.travel(datetime(2026, 11, 21, tzinfo=UTC), tick=False) as clock:
        result = gateway.query(endpoint, ['sum(rate(x{a="ü b"}[1m]))', "vector(1)"])
        clock.shift(timedelta(minutes=29))
        run_query(endpoint)
        assert sessions == [("eu-west-1", ROLE)]
        clock.shift(timedelta(minutes=2))
        run_query(endpoint)

    assert result == [QueryResult("scalar", (PrometheusSample(1.0),))] * 2
    assert sessions == [("eu-west-1", ROLE)] * 2
    assert server.request_count == 4


def test_a_signature_that_aws_does_not_take_is_a_denial(
    sessions: list[tuple[str, str]],
) -> None:
    server = Server(lambda request, body: is_signed(request, body, secret="another"))

    result = run_query(Endpoint(server.url, signing=Signing("eu-west-1", ROLE)))

    assert isinstance(result, PrometheusDenied)
    assert result.message == "Prometheus returned 403: the portal is not allowed to query it"
    assert server.request_count == 1


def test_without_credentials_nothing_is_sent_and_the_reason_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def session_for(_region: str, role_arn: str) -> Any:
        raise eks.EksUnavailable(f"sts:AssumeRole {role_arn} failed: denied")

    monkeypatch.setattr(eks, "session_for", session_for)
    monkeypatch.setattr(sigv4, "_sessions", {})
    server = Server(lambda _request, _body: 200)

    result = run_query(Endpoint(server.url, signing=Signing("eu-west-1", ROLE)))

    assert isinstance(result, PrometheusDenied)
    assert result.message == f"signing for aps failed: sts:AssumeRole {ROLE} failed: denied"
    assert server.request_count == 0


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-1", "us-west-2"),
        ("https://prometheus.example.com", "eu-west-1"),
        ("https://aps-workspaces.us-west-2.amazonaws.com.example.com/x", "eu-west-1"),
    ],
)
def test_a_workspace_in_another_region_is_signed_for_there(url: str, region: str) -> None:
    assert signing_for(url, region="eu-west-1", role_arn=ROLE) == Signing(region, ROLE)


@pytest.mark.django_db
def test_a_cluster_on_eks_is_queried_with_its_role(sessions: list[tuple[str, str]]) -> None:
    server = Server(is_signed)
    expected = draft(
        kind="eks",
        eks_name="prod",
        region="eu-west-1",
        role_arn=ROLE,
        prometheus_url=server.url,
        has_prometheus_sigv4=True,
    )
    cluster_id = clusters.register(actor=SYSTEM, draft=expected)

    result = prometheus.query(cluster_id=cluster_id, queries=["vector(1)"])

    assert result == [QueryResult("scalar", (PrometheusSample(1.0),))]
    assert sessions == [("eu-west-1", ROLE)]
