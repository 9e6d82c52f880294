"""A Prometheus behind a private authority: a real TLS server, whose certificate the test signs."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client

from fleet.clusters.domain import ca_bundle
from fleet.clusters.domain.prometheus import (
    Endpoint,
    PrometheusSample,
    PrometheusUnreachable,
    QueryResult,
)
from fleet.clusters.services import clusters, prometheus
from fleet.models import Cluster
from portal.accounts.policy import SYSTEM
from portal.audit.models import AuditEvent
from portal.core.errors import Invalid
from slipway_localcluster import tls
from tests.accounts import make_user
from tests.fleet.prometheus_servers import Server, draft, run_query

ROLE = "arn:aws:iam::123456789012:role/slipway"


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


def test_only_the_registered_authority_is_trusted(
    secured: Server, authority: tls.Credentials, other_ca: str
) -> None:
    right = run_query(Endpoint(secured.url, ca_pem=ca_of(authority)))
    both = run_query(Endpoint(secured.url, ca_pem=other_ca + ca_of(authority)))
    public = run_query(Endpoint(secured.url))
    other = run_query(Endpoint(secured.url, ca_pem=other_ca))

    assert right == both == QueryResult("scalar", (PrometheusSample(1.0),))
    for refused in (public, other):
        assert isinstance(refused, PrometheusUnreachable)
        assert "its certificate is not trusted" in refused.message
    assert secured.request_count == 2


def test_the_certificates_of_a_trust_setting_are_read_once(
    secured: Server, authority: tls.Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    create = ssl.create_default_context

    def counted(**given: str) -> ssl.SSLContext:
        read.append(given["cadata"])
        return create(**given)  # type: ignore[arg-type]  # only cadata is given

    monkeypatch.setattr(ssl, "create_default_context", counted)
    # Another bundle than that of the other tests.
    endpoint = Endpoint(secured.url, ca_pem=f"{ca_of(authority)}\n\n")

    for _ in range(3):
        assert isinstance(run_query(endpoint), QueryResult)

    assert read == [endpoint.ca_pem]


@pytest.mark.django_db
def test_a_cluster_is_queried_with_its_own_bundle(
    secured: Server, authority: tls.Credentials
) -> None:
    untrusted = draft(prometheus_url=secured.url)
    cluster_id = clusters.register(actor=SYSTEM, draft=untrusted)
    assert prometheus.probe(Cluster.objects.get()).is_there is None

    trusted = draft(
        prometheus_url=secured.url, prometheus_ca_pem=ca_of(authority).replace("\n", "\r\n")
    )
    clusters.register(actor=SYSTEM, draft=trusted)

    assert prometheus.probe(Cluster.objects.get()).is_there is True
    assert prometheus.query(cluster_id=cluster_id, queries=["vector(1)"]) == [
        QueryResult("scalar", (PrometheusSample(1.0),))
    ]


def test_a_bundle_is_described_by_subject_fingerprint_and_expiry(
    authority: tls.Credentials,
) -> None:
    [certificate] = ca_bundle.parse(ca_of(authority))

    assert certificate.subject == "slipway-local-ca"
    der = ssl.PEM_cert_to_DER_cert(ca_of(authority))
    assert certificate.fingerprint.replace(":", "").lower() == hashlib.sha256(der).hexdigest()
    assert certificate.expires_at - datetime.now(UTC) > timedelta(days=3600)
    assert ca_bundle.describe_expired((certificate,), now=certificate.expires_at).startswith(
        "slipway-local-ca expired"
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"prometheus_ca_pem": "hello"}, "prometheus_ca_pem", "1 to 20 certificates"),
        ({"prometheus_ca_pem": "KEY"}, "prometheus_ca_pem", "it contains a private key"),
        ({"prometheus_ca_pem": "LEAF"}, "prometheus_ca_pem", "contains a server certificate"),
        ({"prometheus_ca_pem": "BROKEN"}, "prometheus_ca_pem", "could not be read"),
        ({"prometheus_ca_pem": "MORE"}, "prometheus_ca_pem", "more than certificates"),
        (
            {"prometheus_ca_pem": "CA", "prometheus_url": "http://prometheus.example.com"},
            "prometheus_ca_pem",
            "use an https:// address",
        ),
        (
            {"prometheus_ca_pem": "CA", "prometheus_url": ""},
            "prometheus_url",
            "remove the certificates",
        ),
        (
            {"has_prometheus_sigv4": True, "prometheus_url": ""},
            "prometheus_url",
            "remove Amazon Managed Prometheus",
        ),
        (
            {"has_prometheus_sigv4": True, "prometheus_token_path": "/etc/token"},
            "prometheus_token_path",
            "signed instead",
        ),
    ],
)
def test_what_cannot_be_trusted_is_refused_and_nothing_is_kept(
    authority: tls.Credentials, changed: dict[str, Any], field: str, message: str
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

    assert message in refusal.value.fields[field]
    assert "PRIVATE" not in refusal.value.message
    assert not Cluster.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db
def test_an_expired_authority_is_refused_with_its_day(authority: tls.Credentials) -> None:
    later = ca_bundle.parse(ca_of(authority))[0].expires_at + timedelta(days=1)

    with time_machine.travel(later), pytest.raises(Invalid) as refusal:
        clusters.register(actor=SYSTEM, draft=draft(prometheus_ca_pem=ca_of(authority)))

    assert "slipway-local-ca expired on" in refusal.value.fields["prometheus_ca_pem"]


@pytest.mark.django_db
def test_page_api_and_audit_show_the_fingerprint(
    authority: tls.Credentials, client: Client
) -> None:
    [known] = ca_bundle.parse(ca_of(authority))
    client.force_login(make_user(is_platform_admin=True))
    body = {
        "name": "prod",
        "kind": "kubeconfig",
        "gateway_url": "https://models.example.com",
        "kubeconfig_path": "/etc/kubeconfig",
        "prometheus_url": "https://prometheus.example.com",
        "prometheus_ca_pem": ca_of(authority),
    }

    made = client.post("/api/v1/clusters", body, content_type="application/json")
    shown = client.get(f"/api/v1/clusters/{made.json()['id']}").json()
    page = client.get(f"/admin/clusters/{made.json()['id']}").content.decode()
    edit = client.get(f"/admin/clusters/{made.json()['id']}/edit").content.decode()

    assert made.status_code == 201, made.content
    [certificate] = shown["prometheus_certificates"]
    assert (certificate["subject"], certificate["fingerprint"]) == (
        "slipway-local-ca",
        known.fingerprint,
    )
    assert known.fingerprint in page
    assert f"until {known.expires_at:%Y-%m-%d}" in page
    assert "BEGIN CERTIFICATE" in edit
    event = AuditEvent.objects.get(action="cluster.registered")
    assert event.after["prometheus_ca_pem"] == [known.fingerprint]


@pytest.mark.django_db
def test_the_form_keeps_the_bundle_and_the_signature(
    authority: tls.Credentials, client: Client
) -> None:
    client.force_login(make_user(is_platform_admin=True))
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
    assert cluster.prometheus_ca_pem == ca_bundle.normalize(ca_of(authority))
    assert wrong.status_code == 422
    assert "1 to 20 certificates" in wrong.content.decode()
    assert Cluster.objects.get().prometheus_ca_pem == cluster.prometheus_ca_pem
