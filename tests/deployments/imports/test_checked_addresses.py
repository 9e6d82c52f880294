"""Only public addresses over HTTPS are contacted, and the one that was checked."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from deployments.imports.domain.errors import SourceRefused, SourceUnavailable
from deployments.imports.gateways import remote_files
from deployments.models import Import
from deployments.states import ImportState
from portal.core.errors import Invalid
from tests.cluster import certificates
from tests.deployments import onnx_models
from tests.deployments.imports.conftest import Start, worked
from tests.deployments.imports.model_server import ModelServer, ServedFile

pytestmark = pytest.mark.django_db
MODEL = onnx_models.linear()
MIB = 2**20
SECRET = "X-Amz-Signature=5ecret"


@pytest.fixture(autouse=True)
def on_loopback(settings: Any) -> None:
    settings.SLIPWAY_IMPORT_PRIVATE_HOSTS = ["127.0.0.1"]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://example.org/m.onnx", "is not HTTPS"),
        ("https://127.0.0.2/m.onnx", "own network"),
        ("https://localhost/m.onnx", "own network"),
        ("https://[::ffff:10.0.0.1]/m.onnx", "own network"),
    ],
)
def test_addresses_inside_the_network_are_not_contacted(
    start: Start, address: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "example.org" in address:
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("resolved"))
    job = worked(start(address))

    assert job.state == ImportState.FAILED
    assert message in job.error


@pytest.mark.parametrize(
    "address",
    [
        "https://user:secret@example.org/m.onnx",
        "https://example.org/",
        "https://example.org",
        "https://exa mple.org/m.onnx",
        "https:///m.onnx",
        "https://[bad/m.onnx",
        "https://example.org:99999/m.onnx",
        "ftp://example.org/m.onnx",
        "file:///etc/passwd",
        "https://example.org/..",
        "s3://B/x",
        "hf://a/b/c",
        "",
        "x" * 5000,
    ],
)
def test_malformed_addresses_are_refused_before_a_row_is_written(
    start: Start, address: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        start(address)

    assert set(refusal.value.fields) == {"address"}
    assert "secret" not in str(refusal.value)
    assert not Import.objects.exists()


def test_it_connects_to_the_address_that_was_checked(
    start: Start, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that resolves differently the second time leads nowhere else (DNS rebinding)."""
    port = int(model_server.address.rpartition(":")[2])
    model_server.files["/m.onnx"] = ServedFile(MODEL)
    asked = []

    def resolve(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    def connected(address: Any, *_: Any, **__: Any) -> Any:
        raise AssertionError(f"connected to {address}")

    files = remote_files.RemoteFiles(private_hosts=["models.test"])
    real = socket.create_connection
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(
        socket,
        "create_connection",
        lambda address, *a, **k: (
            real(address, *a, **k) if address[0] == "127.0.0.1" else connected(address)
        ),
    )

    assert files.describe(f"http://models.test:{port}/m.onnx") == (len(MODEL), '"one"')
    files.close()

    assert asked[0] == "models.test"
    assert model_server.requests[0][1]["Host"] == f"models.test:{port}"


def test_a_name_with_one_inner_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443))
        for ip in ("93.184.216.34", "10.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)

    with (
        pytest.raises(SourceRefused, match="own network"),
        remote_files.RemoteFiles().open("https://models.test/m.onnx"),
    ):
        pytest.fail("opened")


def test_the_certificate_must_be_for_the_name_although_it_connects_to_the_number(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = certificates.Authority(tmp_path)
    pair = authority.sign("server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    model_server.wrap(context)
    port = int(model_server.address.rpartition(":")[2])
    rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)
    trust = ssl.create_default_context(cafile=str(authority.path))
    monkeypatch.setattr(remote_files, "_trust", lambda: trust)
    model_server.files["/m.onnx"] = ServedFile(MODEL)
    files = remote_files.RemoteFiles(private_hosts=["localhost", "models.test"])

    assert files.describe(f"https://localhost:{port}/m.onnx") == (len(MODEL), '"one"')
    with pytest.raises(SourceUnavailable, match=r"models\.test does not answer"):
        files.describe(f"https://models.test:{port}/m.onnx")
    files.close()
