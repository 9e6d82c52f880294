"""The demo's object store keeps what it accepted, whatever ends it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests import plain_http
from tests.demo.demo_s3 import BUCKET, ORIGIN, Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    server.prepare()
    yield server
    server.end()


def test_versions_and_bytes_survive_a_kill(server: Server) -> None:
    first = server.client.put_object(Bucket=BUCKET, Key="a/b.onnx", Body=b"one")
    second = server.client.put_object(Bucket=BUCKET, Key="a/b.onnx", Body=b"two" * 10_000)
    server.client.put_object(Bucket=BUCKET, Key="gone", Body=b"x")
    server.client.delete_object(Bucket=BUCKET, Key="gone")

    server.stop(signal.SIGKILL)
    server.start()

    def read(version: str) -> bytes:
        got = server.client.get_object(Bucket=BUCKET, Key="a/b.onnx", VersionId=version)
        return bytes(got["Body"].read())

    assert read(first["VersionId"]) == b"one"
    assert read(second["VersionId"]) == b"two" * 10_000
    listed = server.client.list_object_versions(Bucket=BUCKET)
    assert [v["VersionId"] for v in listed["Versions"] if v["Key"] == "a/b.onnx"] == [
        second["VersionId"],
        first["VersionId"],
    ]
    assert [m["Key"] for m in listed["DeleteMarkers"]] == ["gone"]
    assert server.client.get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"
    third = server.client.put_object(Bucket=BUCKET, Key="a/b.onnx", Body=b"three")
    assert third["VersionId"] not in {first["VersionId"], second["VersionId"]}


def test_completed_multipart_upload_survives_and_open_one_is_unknown(server: Server) -> None:
    s3 = server.client
    done = s3.create_multipart_upload(Bucket=BUCKET, Key="big")
    part = s3.upload_part(
        Bucket=BUCKET, Key="big", UploadId=done["UploadId"], PartNumber=1, Body=b"z" * 6_000_000
    )
    completed = s3.complete_multipart_upload(
        Bucket=BUCKET,
        Key="big",
        UploadId=done["UploadId"],
        MultipartUpload={"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]},
    )
    opened = s3.create_multipart_upload(Bucket=BUCKET, Key="open")

    server.stop(signal.SIGKILL)
    server.start()

    head = server.client.head_object(Bucket=BUCKET, Key="big", VersionId=completed["VersionId"])
    assert head["ContentLength"] == 6_000_000
    with pytest.raises(server.client.exceptions.NoSuchUpload):
        server.client.list_parts(Bucket=BUCKET, Key="open", UploadId=opened["UploadId"])


def test_deleted_versions_stay_deleted(server: Server) -> None:
    put = server.client.put_object(Bucket=BUCKET, Key="k", Body=b"1")
    server.client.delete_object(Bucket=BUCKET, Key="k", VersionId=put["VersionId"])

    server.stop(signal.SIGKILL)
    server.start()

    assert "Versions" not in server.client.list_object_versions(Bucket=BUCKET)


def test_only_the_named_origin_may_write_from_a_browser(server: Server) -> None:
    server.stop(signal.SIGKILL)
    server.start()
    url = server.client.generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "k"})

    def preflight(origin: str) -> httpx.Response:
        headers = {"Origin": origin, "Access-Control-Request-Method": "PUT"}
        return plain_http.client.options(url, headers=headers)

    assert preflight(ORIGIN).headers["access-control-allow-origin"] == ORIGIN
    assert "access-control-allow-origin" not in preflight("http://evil.example").headers
    answer = plain_http.client.put(url, content=b"bytes", headers={"Origin": ORIGIN})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == ORIGIN


def test_stops_on_sigterm(server: Server) -> None:
    assert server.stop(signal.SIGTERM) == 0
