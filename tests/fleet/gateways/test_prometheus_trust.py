"""A Prometheus that asks for more than a token: one behind a private authority, one behind AWS."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest
import time_machine
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.test import Client

from fleet.domain import certificates
from fleet.domain.prometheus import (
    Answer,
    Endpoint,
    PrometheusDenied,
    PrometheusError,
    PrometheusUnreachable,
    Sample,
    Signing,
    signing_for,
)
from fleet.gateways import aws_signing, eks
from fleet.gateways import prometheus as gateway
from fleet.localcluster import tls
from fleet.models import Cluster
from fleet.services import clusters, prometheus
from fleet.services.clusters import ClusterDraft
from portal.accounts.policy import SYSTEM
from portal.audit.models import AuditEvent
from portal.core.errors import Invalid
from tests.factories import UserFactory

ONE = b'{"status":"success","data":{"resultType":"scalar","result":[0,"1"]}}'
KEYS = ("AKIDEXAMPLE", "wJalrXUtnFEMI", "a-session-token")
ROLE = "arn:aws:iam::123456789012:role/slipway"
Judge = Callable[[BaseHTTPRequestHandler, bytes], int]


class Server:
    """`judge` gives the status of an answer; `seen` counts requests."""

    def __init__(self, judge: Judge, context: ssl.SSLContext | None = None) -> None:
        self.seen = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.seen += 1
                self.send_response(judge(self, body))
                self.send_header("Content-Length", str(len(ONE)))
                self.end_headers()
                self.wfile.write(ONE)

            def log_message(self, *_args: Any) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = "https"
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tls.Credentials:
    return tls.prepare(tmp_path_factory.mktemp("authority"), port=1)


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tls.prepare(tmp_path_factory.mktemp("other"), port=1).authority.read_text()


@pytest.fixture
def secured(authority: tls.Credentials) -> Iterator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.certificate, authority.key)
    server = Server(lambda _request, _body: 200, context)
    yield server
    server.server.shutdown()


def ca_of(authority: tls.Credentials) -> str:
    return authority.authority.read_text()


def asked(endpoint: Endpoint) -> Answer | PrometheusError:
    [found] = gateway.ask(endpoint, ["vector(1)"])
    return found


def test_only_the_registered_authority_is_trusted(
    secured: Server, authority: tls.Credentials, other_ca: str
) -> None:
    right = asked(Endpoint(secured.url, ca_pem=ca_of(authority)))
    both = asked(Endpoint(secured.url, ca_pem=other_ca + ca_of(authority)))
    public = asked(Endpoint(secured.url))
    other = asked(Endpoint(secured.url, ca_pem=other_ca))

    assert right == both == Answer("scalar", (Sample(1.0),))
    for refused in (public, other):
        assert isinstance(refused, PrometheusUnreachable)
        assert "certificate verify failed" in refused.message
    assert secured.seen == 2


@pytest.mark.django_db
def test_a_cluster_is_asked_with_its_own_bundle(
    secured: Server, authority: tls.Credentials
) -> None:
    plain = draft(prometheus_url=secured.url)
    cluster_id = clusters.register(actor=SYSTEM, draft=plain)
    assert prometheus.look(Cluster.objects.get()).is_there is None

    trusted = draft(
        prometheus_url=secured.url, prometheus_ca_pem=ca_of(authority).replace("\n", "\r\n")
    )
    clusters.register(actor=SYSTEM, draft=trusted)

    assert prometheus.look(Cluster.objects.get()).is_there is True
    assert prometheus.ask(cluster_id=cluster_id, queries=["vector(1)"]) == [
        Answer("scalar", (Sample(1.0),))
    ]


def test_a_bundle_is_told_by_subject_fingerprint_and_end(authority: tls.Credentials) -> None:
    [found] = certificates.read(ca_of(authority))

    assert found.subject == "slipway-local-ca"
    der = ssl.PEM_cert_to_DER_cert(ca_of(authority))
    assert found.fingerprint.replace(":", "").lower() == hashlib.sha256(der).hexdigest()
    assert found.expires_at - datetime.now(UTC) > timedelta(days=3600)
    assert certificates.expired((found,), now=found.expires_at).startswith(
        "slipway-local-ca expired"
    )


def draft(**changed: Any) -> ClusterDraft:
    values = {
        "name": "prod",
        "kind": "kubeconfig",
        "gateway_url": "https://models.example.com",
        "kubeconfig_path": "/etc/kubeconfig",
        "prometheus_url": "https://prometheus.example.com",
        **changed,
    }
    return ClusterDraft(**values)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"prometheus_ca_pem": "hello"}, "prometheus_ca_pem", "1 to 20 certificates"),
        ({"prometheus_ca_pem": "KEY"}, "prometheus_ca_pem", "it holds a private key"),
        ({"prometheus_ca_pem": "LEAF"}, "prometheus_ca_pem", "is a server's own"),
        ({"prometheus_ca_pem": "BROKEN"}, "prometheus_ca_pem", "cannot be read"),
        ({"prometheus_ca_pem": "MORE"}, "prometheus_ca_pem", "something beside certificates"),
        (
            {"prometheus_ca_pem": "CA", "prometheus_url": "http://prometheus.example.com"},
            "prometheus_ca_pem",
            "register an https:// address",
        ),
        (
            {"prometheus_ca_pem": "CA", "prometheus_url": ""},
            "prometheus_url",
            "certificates are for",
        ),
        (
            {"has_prometheus_sigv4": True, "prometheus_url": ""},
            "prometheus_url",
            "signature is for",
        ),
        (
            {"has_prometheus_sigv4": True, "prometheus_token_path": "/etc/token"},
            "prometheus_token_path",
            "signed instead",
        ),
    ],
)
def test_what_cannot_be_trusted_is_refused_and_nothing_is_kept(
    authority: tls.Credentials, changed: dict[str, Any], field: str, words: str
) -> None:
    ca = ca_of(authority)
    named = {
        "CA": ca,
        "KEY": ca + authority.key.read_text(),
        "LEAF": authority.certificate.read_text(),
        "BROKEN": ca.replace("M", "N", 8),
        "MORE": f"the one of prod:\n{ca}",
    }
    sent = {key: named.get(value, value) for key, value in changed.items()}

    with pytest.raises(Invalid) as refusal:
        clusters.register(actor=SYSTEM, draft=draft(**sent))

    assert words in refusal.value.fields[field]
    assert "PRIVATE" not in refusal.value.message
    assert not Cluster.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db
def test_an_expired_authority_is_refused_with_its_day(authority: tls.Credentials) -> None:
    later = certificates.read(ca_of(authority))[0].expires_at + timedelta(days=1)

    with time_machine.travel(later), pytest.raises(Invalid) as refusal:
        clusters.register(actor=SYSTEM, draft=draft(prometheus_ca_pem=ca_of(authority)))

    assert "slipway-local-ca expired on" in refusal.value.fields["prometheus_ca_pem"]


@pytest.mark.django_db
def test_page_api_and_trail_tell_the_fingerprint(
    authority: tls.Credentials, client: Client
) -> None:
    [known] = certificates.read(ca_of(authority))
    client.force_login(UserFactory(is_platform_admin=True))
    body = {
        "name": "prod",
        "kind": "kubeconfig",
        "gateway_url": "https://models.example.com",
        "kubeconfig_path": "/etc/kubeconfig",
        "prometheus_url": "https://prometheus.example.com",
        "prometheus_ca_pem": ca_of(authority),
    }

    made = client.post("/api/v1/clusters", body, content_type="application/json")
    found = client.get(f"/api/v1/clusters/{made.json()['id']}").json()
    page = client.get(f"/admin/clusters/{made.json()['id']}").content.decode()
    edit = client.get(f"/admin/clusters/{made.json()['id']}/edit").content.decode()

    assert made.status_code == 201, made.content
    [told] = found["prometheus_certificates"]
    assert (told["subject"], told["fingerprint"]) == ("slipway-local-ca", known.fingerprint)
    assert known.fingerprint in page
    assert f"until {known.expires_at:%Y-%m-%d}" in page
    assert "BEGIN CERTIFICATE" in edit
    event = AuditEvent.objects.get(action="cluster.registered")
    assert event.after["prometheus_ca_pem"] == [known.fingerprint]


@pytest.mark.django_db
def test_the_form_keeps_the_bundle_and_the_signature(
    authority: tls.Credentials, client: Client
) -> None:
    client.force_login(UserFactory(is_platform_admin=True))
    typed = {
        "name": "prod",
        "kind": "eks",
        "region": "eu-west-1",
        "eks_name": "prod",
        "role_arn": ROLE,
        "gateway_url": "https://models.example.com",
        "prometheus_url": "https://prometheus.example.com",
        "has_prometheus_sigv4": "on",
        "prometheus_ca_pem": ca_of(authority),
    }

    made = client.post("/admin/clusters/new", typed)
    cluster = Cluster.objects.get()
    wrong = client.post("/admin/clusters/new", {**typed, "prometheus_ca_pem": "hello"})

    assert made.status_code == 302, made.content
    assert cluster.has_prometheus_sigv4
    assert cluster.prometheus_ca_pem == certificates.plain(ca_of(authority))
    assert wrong.status_code == 422
    assert "1 to 20 certificates" in wrong.content.decode()
    assert Cluster.objects.get().prometheus_ca_pem == cluster.prometheus_ca_pem


# Amazon Managed Prometheus


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
    monkeypatch.setattr(aws_signing, "_sessions", {})
    return assumed


def test_requests_are_signed_with_the_clusters_role_and_the_role_is_kept_a_while(
    sessions: list[tuple[str, str]],
) -> None:
    server = Server(is_signed)
    endpoint = Endpoint(f"{server.url}/workspaces/ws-1", signing=Signing("eu-west-1", ROLE))

    with time_machine.travel(datetime(2026, 11, 21, tzinfo=UTC), tick=False) as clock:
        found = gateway.ask(endpoint, ['sum(rate(x{a="ü b"}[1m]))', "vector(1)"])
        clock.shift(timedelta(minutes=29))
        asked(endpoint)
        assert sessions == [("eu-west-1", ROLE)]
        clock.shift(timedelta(minutes=2))
        asked(endpoint)

    assert found == [Answer("scalar", (Sample(1.0),))] * 2
    assert sessions == [("eu-west-1", ROLE)] * 2
    assert server.seen == 4


def test_a_signature_that_aws_does_not_take_is_a_denial(
    sessions: list[tuple[str, str]],
) -> None:
    server = Server(lambda request, body: is_signed(request, body, secret="another"))

    found = asked(Endpoint(server.url, signing=Signing("eu-west-1", ROLE)))

    assert isinstance(found, PrometheusDenied)
    assert found.message == "Prometheus answers 403: the portal may not ask it"
    assert server.seen == 1


def test_without_credentials_nothing_is_sent_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def session_for(_region: str, role_arn: str) -> Any:
        raise eks.EksUnavailable(f"sts:AssumeRole {role_arn} failed: denied")

    monkeypatch.setattr(eks, "session_for", session_for)
    monkeypatch.setattr(aws_signing, "_sessions", {})
    server = Server(lambda _request, _body: 200)

    found = asked(Endpoint(server.url, signing=Signing("eu-west-1", ROLE)))

    assert isinstance(found, PrometheusDenied)
    assert found.message == f"signing for aps failed: sts:AssumeRole {ROLE} failed: denied"
    assert server.seen == 0


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
def test_a_cluster_on_eks_is_asked_through_its_role(sessions: list[tuple[str, str]]) -> None:
    server = Server(is_signed)
    wanted = draft(
        kind="eks",
        eks_name="prod",
        region="eu-west-1",
        role_arn=ROLE,
        prometheus_url=server.url,
        has_prometheus_sigv4=True,
    )
    cluster_id = clusters.register(actor=SYSTEM, draft=wanted)

    found = prometheus.ask(cluster_id=cluster_id, queries=["vector(1)"])

    assert found == [Answer("scalar", (Sample(1.0),))]
    assert sessions == [("eu-west-1", ROLE)]
