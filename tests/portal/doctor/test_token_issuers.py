"""Keys of token issuers, read where a gateway's proxies read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from deployments.callers.services import token_issuers
from deployments.callers.services.token_issuers import IssuerDraft
from portal.doctor.lines import Status
from tests.accounts import make_user
from tests.fixtures.http_server import serving
from tests.portal.doctor.conftest import Doctor, failing

_KEYS = {"keys": [{"kid": "1", "kty": "EC"}, {"kid": "2", "kty": "EC"}]}
_ANSWERS: dict[str, tuple[int, str]] = {
    "/keys": (200, json.dumps(_KEYS)),
    "/moved": (302, ""),
    "/gone": (404, "{}"),
    "/page": (200, "<html>"),
    "/empty": (200, '{"keys": []}'),
    "/list": (200, "[]"),
}


class _Provider(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, body = _ANSWERS[self.path]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/keys")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with serving(_Provider) as port:
        yield f"http://127.0.0.1:{port}"


def _register(jwks_url: str) -> None:
    admin = make_user(username="admin", is_platform_admin=True)
    draft = IssuerDraft("acme", "https://login.example.com", jwks_url, ["models"])
    token_issuers.add(actor=admin, draft=draft)


def test_keys_that_are_published(doctor: Doctor, address: str) -> None:
    _register(f"{address}/keys")

    line = doctor("clusters")["Keys of acme"]

    assert line.status is Status.OK
    assert line.detail == f"{address}/keys publishes 2; the gateway's proxies must reach it too"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/moved", "it redirects, and proxies follow no redirect"),
        ("/gone", "it answers 404"),
        ("/page", "it does not answer with JSON"),
        ("/empty", "its answer has no keys"),
        ("/list", "its answer has no keys"),
    ],
)
def test_an_answer_without_keys_fails_and_says_what_to_do(
    doctor: Doctor, address: str, path: str, problem: str
) -> None:
    _register(f"{address}{path}")

    lines = doctor("clusters")

    assert failing(lines) == {"Keys of acme"}
    assert lines["Keys of acme"].detail == f"{address}{path}: {problem}"
    assert "Admin > Token issuers" in lines["Keys of acme"].fix
    assert "the gateway's proxies read it" in lines["Keys of acme"].fix


def test_a_server_that_is_away_fails(doctor: Doctor) -> None:
    _register("http://127.0.0.1:1/keys")

    line = doctor("clusters")["Keys of acme"]

    assert line.status is Status.FAILED
    assert line.detail == "http://127.0.0.1:1/keys: it does not answer: the connection was refused"


def test_an_address_inside_a_cluster_may_be_out_of_the_portals_reach(doctor: Doctor) -> None:
    _register("http://dex.auth.svc:5556/keys")

    assert doctor("clusters")["Keys of acme"].status is Status.NOTE


def test_without_issuers_nothing_is_said(doctor: Doctor) -> None:
    assert [name for name in doctor("clusters") if name.startswith("Keys")] == []
