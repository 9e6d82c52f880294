"""Imports from a URL: bytes go through the worker part by part, and only from where they may."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from deployments.imports.services import imports, streamed_files
from deployments.models import Import, ImportedFile, ModelVersion
from deployments.registry.gateways.object_store import S3Store
from deployments.states import ImportState, VersionState
from portal.audit.models import AuditEvent
from tests.deployments import onnx_models
from tests.deployments.imports.conftest import Start, forget_leases, run_until_over, worked
from tests.deployments.imports.model_server import ModelServer, ServedFile
from tests.deployments.uploading import People

pytestmark = pytest.mark.django_db
MODEL = onnx_models.linear()
MIB = 2**20
SECRET = "X-Amz-Signature=5ecret"


@pytest.fixture(autouse=True)
def on_loopback(settings: Any) -> None:
    settings.SLIPWAY_IMPORT_PRIVATE_HOSTS = ["127.0.0.1"]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_files, "_PART_BYTES", 5 * MIB)


def content(store: S3Store, version: ModelVersion) -> bytes:
    file = version.files.get()
    return b"".join(store.read(file.key, file.s3_version_id))


def test_a_url_becomes_a_verified_version(start: Start, model_server: ModelServer) -> None:
    model_server.files["/a/detector.onnx"] = ServedFile(MODEL)

    job = worked(start(f"{model_server.address}/a/detector.onnx"))

    assert (job.state, job.error) == (ImportState.DONE, "")
    version = run_until_over(job)
    assert (version.state, version.filename) == (VersionState.READY, "detector.onnx")
    assert ImportedFile.objects.get().etag == '"one"'


def test_the_query_of_a_url_is_nowhere_in_the_clear(
    start: Start, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "deployments")
    for name in ("httpx", "httpcore"):
        assert logging.getLogger(name).getEffectiveLevel() >= logging.WARNING
    model_server.files["/m.onnx"] = ServedFile(b"", status=500)

    job = worked(start(f"{model_server.address}/m.onnx?{SECRET}"))

    assert job.address == f"{model_server.address}/m.onnx"
    assert job.error.startswith(f"{model_server.address}/m.onnx is not available now (500).")
    rows = [
        str(list(table.objects.values()))
        for table in (Import, ImportedFile, ModelVersion, AuditEvent)
    ]
    assert SECRET not in "".join(rows) + caplog.text
    model_server.files["/m.onnx"] = ServedFile(MODEL)
    forget_leases()
    job = worked(job)
    assert {path for path, _ in model_server.requests} == {f"/m.onnx?{SECRET}"}
    assert (job.state, job.sealed_url) == (ImportState.DONE, "")


def test_a_server_that_stops_in_the_middle_is_continued_where_it_stopped(
    start: Start, model_server: ModelServer, s3_store: S3Store, small_parts: None
) -> None:
    body = bytes(range(256)) * (12 * MIB // 256)
    model_server.files["/m.onnx"] = ServedFile(body, stops_after=11 * MIB)

    job = worked(start(f"{model_server.address}/m.onnx"))

    assert (job.state, job.version.state) == (ImportState.RUNNING, VersionState.UPLOADING)
    assert "stopped in the middle" in job.error
    model_server.files["/m.onnx"] = ServedFile(body)
    forget_leases()
    job = worked(job)
    assert (job.state, job.copied_bytes) == (ImportState.DONE, len(body))
    assert model_server.ranges() == ["bytes=0-0", "bytes=0-", f"bytes={10 * MIB}-"]
    assert content(s3_store, job.version) == body


@pytest.mark.parametrize("etag", ['"one"', ""])
def test_a_server_without_ranges_is_read_again(
    start: Start, model_server: ModelServer, s3_store: S3Store, small_parts: None, etag: str
) -> None:
    body = bytes(range(256)) * (12 * MIB // 256)
    file = ServedFile(body, etag=etag, has_ranges=False, stops_after=11 * MIB)
    model_server.files["/m.onnx"] = file
    job = worked(start(f"{model_server.address}/m.onnx"))
    assert job.state == ImportState.RUNNING
    file.stops_after = None
    forget_leases()

    job = worked(job)

    assert job.state == ImportState.DONE
    assert content(s3_store, job.version) == body


@pytest.mark.parametrize(
    "now",
    [
        ServedFile(b"y" * 6 * MIB, etag='"two"'),
        ServedFile(b"y" * 7 * MIB, etag='"one"'),
        ServedFile(b"y" * 5 * MIB, etag="", has_ranges=False),
    ],
)
def test_another_file_at_the_address_stops_it(
    start: Start,
    model_server: ModelServer,
    people: People,
    s3_store: S3Store,
    small_parts: None,
    now: ServedFile,
) -> None:
    model_server.files["/m.onnx"] = ServedFile(b"x" * 6 * MIB, stops_after=5 * MIB + 10)
    job = worked(start(f"{model_server.address}/m.onnx"))
    model_server.files["/m.onnx"] = now
    forget_leases()

    job = worked(job)

    assert (job.state, job.version.state) == (ImportState.FAILED, VersionState.UPLOADING)
    assert job.error.startswith("m.onnx was replaced on the server after it was listed.")
    imports.resume(actor=people.member, import_id=job.pk)
    job = worked(job)
    assert job.state == ImportState.DONE
    assert content(s3_store, job.version) == now.body


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (ServedFile(b"x", status=403), "denied access (403). A pre-signed URL may have expired"),
        (ServedFile(b"x", status=404), "does not exist (404). Check the address."),
        (ServedFile(b"x", status=418), "answered with status 418."),
        (ServedFile(b"x", has_ranges=False, says_length=-1), "does not say how large the file is"),
        (ServedFile(b"x", headers={"Content-Encoding": "gzip"}), "compressed"),
        (ServedFile(b""), "The file is empty; choose the exported model."),
        (ServedFile(b"x", redirects_to="/m.onnx"), "redirects too often."),
        (ServedFile(b"x", redirects_to="http://10.0.0.1/m.onnx"), "is not HTTPS."),
        (ServedFile(b"x", redirects_to="https://10.0.0.1/m"), "inside the portal's own network"),
        (ServedFile(b"x", redirects_to="https://169.254.169.254/latest"), "own network"),
        (ServedFile(b"x", redirects_to="https://[::1]/m.onnx"), "own network"),
        (ServedFile(b"x", redirects_to="https://a:b@example.org/m"), "cannot be imported from"),
        (ServedFile(b"x", redirects_to="file:///etc/passwd"), "cannot be imported from"),
        (ServedFile(b"x", redirects_to="https://[oops/m"), "no valid address"),
    ],
)
def test_what_cannot_be_imported_says_why(
    start: Start, model_server: ModelServer, file: ServedFile, message: str
) -> None:
    model_server.files["/m.onnx"] = file

    job = worked(start(f"{model_server.address}/m.onnx"))

    assert (job.state, job.version.files.count()) == (ImportState.FAILED, 0)
    assert message in job.error


@pytest.mark.parametrize("says", [6 * MIB + 1, 6 * MIB - 1])
def test_a_length_that_is_not_true_never_becomes_a_version(
    start: Start, model_server: ModelServer, says: int
) -> None:
    model_server.files["/m.onnx"] = ServedFile(b"x" * 6 * MIB, has_ranges=False, says_length=says)

    job = worked(start(f"{model_server.address}/m.onnx"))

    # A body that is longer than its length ends with its length: the verification decides.
    is_cut = says < 6 * MIB
    assert job.state == (ImportState.DONE if is_cut else ImportState.RUNNING)
    assert is_cut or "stopped in the middle" in job.error
    assert run_until_over(job).state != VersionState.READY
