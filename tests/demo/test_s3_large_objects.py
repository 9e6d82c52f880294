"""The demo's object store holds what is larger than its memory: parts, ranges, copies, checksums."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.demo.demo_s3 import BUCKET, Server

MIB = 2**20
PART = 10 * MIB
SMALL = 5 * MIB
# Of 200 MiB, beside what the server has at its start: a few parts, never the object.
ROOM_MIB = 60


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("s3"))
    server.prepare()
    yield server
    server.end()


@pytest.fixture
def server(started: Server) -> Server:
    """With an empty bucket."""
    listed = started.client.list_object_versions(Bucket=BUCKET)
    for row in [*listed.get("Versions", []), *listed.get("DeleteMarkers", [])]:
        started.client.delete_object(Bucket=BUCKET, Key=row["Key"], VersionId=row["VersionId"])
    assert started.stored_bytes == 0
    return started


def upload(
    s3: Any, key: str, parts: list[bytes], *, checksums: bool = False
) -> tuple[dict[str, Any], str]:
    """What completing answered, and the id of the upload."""
    extra = {"ChecksumAlgorithm": "SHA256"} if checksums else {}
    upload_id = s3.create_multipart_upload(Bucket=BUCKET, Key=key, **extra)["UploadId"]
    of_upload = {"Bucket": BUCKET, "Key": key, "UploadId": upload_id}
    manifest = []
    for number, body in enumerate(parts, start=1):
        declared = {"ChecksumSHA256": sha256_base64(body)} if checksums else {}
        part = s3.upload_part(**of_upload, PartNumber=number, Body=body, **declared)
        manifest.append({"PartNumber": number, "ETag": part["ETag"]})
    done = s3.complete_multipart_upload(**of_upload, MultipartUpload={"Parts": manifest})
    return done, upload_id


def sha256_base64(body: bytes) -> str:
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


def read(s3: Any, key: str, **more: Any) -> bytes:
    return bytes(s3.get_object(Bucket=BUCKET, Key=key, **more)["Body"].read())


def test_200_mib_are_stored_read_and_copied_in_the_memory_of_a_few_parts(server: Server) -> None:
    s3, parts = server.client, [os.urandom(MIB) * 10 for _ in range(20)]
    before = server.peak_mib

    done, _ = upload(s3, "weights", parts, checksums=True)

    whole = hashlib.sha256(b"".join(parts)).hexdigest()
    digest = hashlib.sha256()
    for chunk in s3.get_object(Bucket=BUCKET, Key="weights")["Body"].iter_chunks(MIB):
        digest.update(chunk)
    assert digest.hexdigest() == whole
    edge = 7 * PART
    assert read(s3, "weights", Range=f"bytes={edge - 3}-{edge + 2}") == parts[6][-3:] + parts[7][:3]
    source = {"Bucket": BUCKET, "Key": "weights", "VersionId": done["VersionId"]}
    s3.copy_object(Bucket=BUCKET, Key="copy", CopySource=source)
    copied = hashlib.sha256(read(s3, "copy")).hexdigest()
    assert copied == whole
    assert server.stored_bytes == 200 * MIB
    assert server.peak_mib - before < ROOM_MIB


def test_digests_of_an_object_of_parts_are_those_of_s3(server: Server) -> None:
    parts = [os.urandom(SMALL), os.urandom(SMALL), b"end"]

    done, _ = upload(server.client, "weights", parts, checksums=True)

    md5s = b"".join(hashlib.md5(part, usedforsecurity=False).digest() for part in parts)
    etag = f'"{hashlib.md5(md5s, usedforsecurity=False).hexdigest()}-3"'
    composite = sha256_base64(b"".join(hashlib.sha256(part).digest() for part in parts))
    got = server.client.get_object(Bucket=BUCKET, Key="weights", ChecksumMode="ENABLED")
    assert (done["ETag"], got["ETag"]) == (etag, etag)
    assert got["ChecksumSHA256"] == f"{composite}-3"
    assert (got["ChecksumType"], got["ContentLength"]) == ("COMPOSITE", 2 * SMALL + 3)
    single = server.client.put_object(Bucket=BUCKET, Key="small", Body=b"bytes")
    md5 = hashlib.md5(b"bytes", usedforsecurity=False).hexdigest()
    assert single["ETag"] == f'"{md5}"'
    server.client.copy_object(
        Bucket=BUCKET,
        Key="copy",
        CopySource={"Bucket": BUCKET, "Key": "weights"},
        ChecksumAlgorithm="SHA256",
    )
    of_copy = server.client.get_object(Bucket=BUCKET, Key="copy", ChecksumMode="ENABLED")
    assert of_copy["ChecksumSHA256"] == sha256_base64(b"".join(parts))
    assert of_copy["ETag"] == f'"{hashlib.md5(b"".join(parts), usedforsecurity=False).hexdigest()}"'


def test_a_part_with_another_digest_is_refused_and_the_stored_one_stays(server: Server) -> None:
    s3, good = server.client, os.urandom(SMALL)
    upload_id = s3.create_multipart_upload(Bucket=BUCKET, Key="k", ChecksumAlgorithm="SHA256")
    part = {"Bucket": BUCKET, "Key": "k", "UploadId": upload_id["UploadId"], "PartNumber": 1}
    stored = s3.upload_part(**part, Body=good, ChecksumSHA256=sha256_base64(good))

    with pytest.raises(ClientError) as refused:
        s3.upload_part(**part, Body=good[::-1], ChecksumSHA256=sha256_base64(good))

    assert refused.value.response["Error"]["Code"] == "BadDigest"
    listed = s3.list_parts(Bucket=BUCKET, Key="k", UploadId=part["UploadId"])["Parts"]
    assert [row["ETag"] for row in listed] == [stored["ETag"]]
    assert server.stored_bytes == SMALL
    s3.abort_multipart_upload(Bucket=BUCKET, Key="k", UploadId=part["UploadId"])
    assert server.stored_bytes == 0


def test_copied_ranges_survive_their_source_and_take_its_space_only_once(server: Server) -> None:
    s3, parts = server.client, [os.urandom(SMALL), os.urandom(SMALL)]
    done, _ = upload(s3, "source", parts)
    source = {"Bucket": BUCKET, "Key": "source", "VersionId": done["VersionId"]}
    upload_id = s3.create_multipart_upload(Bucket=BUCKET, Key="target")["UploadId"]
    of_upload = {"Bucket": BUCKET, "Key": "target", "UploadId": upload_id}
    ranges = [(SMALL - 3, 2 * SMALL - 1), (0, 3)]
    manifest = []
    for number, (first, last) in enumerate(ranges, start=1):
        part = s3.upload_part_copy(
            **of_upload,
            PartNumber=number,
            CopySource=source,
            CopySourceRange=f"bytes={first}-{last}",
        )
        manifest.append({"PartNumber": number, "ETag": part["CopyPartResult"]["ETag"]})
    s3.complete_multipart_upload(**of_upload, MultipartUpload={"Parts": manifest})
    assert server.stored_bytes == 2 * SMALL

    s3.delete_object(Bucket=BUCKET, Key="source", VersionId=done["VersionId"])

    assert read(s3, "target") == parts[0][-3:] + parts[1] + parts[0][:4]
    server.stop(signal.SIGKILL)
    server.start()
    assert read(server.client, "target", Range="bytes=-5") == parts[1][-1:] + parts[0][:4]


def test_parts_of_open_uploads_are_removed_at_the_next_start(server: Server) -> None:
    s3 = server.client
    upload(s3, "kept", [b"whole"])
    opened = s3.create_multipart_upload(Bucket=BUCKET, Key="open")["UploadId"]
    s3.upload_part(Bucket=BUCKET, Key="open", UploadId=opened, PartNumber=1, Body=bytes(SMALL))
    assert server.stored_bytes == SMALL + 5

    server.stop(signal.SIGKILL)
    server.start()

    assert server.stored_bytes == 5
    assert read(server.client, "kept") == b"whole"


def test_completing_twice_gives_the_same_version_and_unlisted_parts_go(server: Server) -> None:
    s3 = server.client
    upload_id = s3.create_multipart_upload(Bucket=BUCKET, Key="k")["UploadId"]
    of_upload = {"Bucket": BUCKET, "Key": "k", "UploadId": upload_id}
    part = s3.upload_part(**of_upload, PartNumber=1, Body=b"a")
    s3.upload_part(**of_upload, PartNumber=2, Body=b"unlisted")
    manifest = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}

    first = s3.complete_multipart_upload(**of_upload, MultipartUpload=manifest)
    again = s3.complete_multipart_upload(**of_upload, MultipartUpload=manifest)

    assert first["VersionId"] == again["VersionId"]
    assert (read(s3, "k"), server.stored_bytes) == (b"a", 1)


def test_versions_of_one_key_keep_their_own_bytes(server: Server, tmp_path: Path) -> None:
    s3 = server.client
    first, _ = upload(s3, "k", [b"first"])
    second = s3.put_object(Bucket=BUCKET, Key="k", Body=b"second")

    s3.delete_object(Bucket=BUCKET, Key="k")

    assert read(s3, "k", VersionId=first["VersionId"]) == b"first"
    assert read(s3, "k", VersionId=second["VersionId"]) == b"second"
    assert read(s3, "k", VersionId=second["VersionId"], Range="bytes=2-") == b"cond"
