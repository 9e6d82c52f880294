"""Parts are signed as they were promised: existing numbers, exact bytes, several files at once."""

from __future__ import annotations

import hashlib
import hmac
import os
from urllib.parse import parse_qs, urlsplit

import pytest

from deployments.models import ModelVersion
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import file_uploads, upload_signing, uploads
from deployments.registry.services.upload_signing import PartsToSign
from deployments.registry.services.upload_validation import DraftFile, UploadDraft
from portal.core.errors import Invalid
from tests import plain_http
from tests.deployments.registry.upload_requests import (
    MIB,
    open_uploads,
    start,
)
from tests.deployments.uploading import People

pytestmark = pytest.mark.django_db


def test_parts_are_signed_in_small_batches_of_existing_numbers(
    people: People, s3_store: S3Store
) -> None:
    version = start(people)

    for numbers in ([0], [4], [], list(range(1, 52))):
        with pytest.raises(Invalid):
            upload_signing.sign_parts(
                actor=people.member, version_id=version.pk, files=[PartsToSign("", numbers)]
            )


def _folder(people: People) -> ModelVersion:
    sizes = {"config.pbtxt": 10, "1/model.onnx": 20 * MIB, "1/labels.txt": 20}
    files = [DraftFile(path=path, size_bytes=size) for path, size in sizes.items()]
    return uploads.start(
        actor=people.member,
        team_slug="vision",
        model_name="detector",
        draft=UploadDraft(files=files),
    )


def test_parts_of_several_files_are_signed_together(people: People, s3_store: S3Store) -> None:
    version = _folder(people)
    wanted = [PartsToSign("1/model.onnx", [3, 1]), PartsToSign("config.pbtxt", [1])]

    urls = upload_signing.sign_parts(actor=people.member, version_id=version.pk, files=wanted)

    assert [(url.path, url.number, url.size_bytes) for url in urls] == [
        ("1/model.onnx", 3, 4 * MIB),
        ("1/model.onnx", 1, 8 * MIB),
        ("config.pbtxt", 1, 10),
    ]
    plain_http.client.put(urls[2].url, content=b"max_batch:").raise_for_status()
    state = uploads.stored_parts(actor=people.member, version_id=version.pk, path="config.pbtxt")
    assert state.missing == []
    assert len(open_uploads(s3_store)) == 2


@pytest.mark.parametrize(
    "second",
    [
        PartsToSign("1/labels.txt", [2]),
        PartsToSign("1/labels.txt", []),
        PartsToSign("other.txt", [1]),
        PartsToSign("", [1]),
        PartsToSign("1/model.onnx", [1] * 50),
    ],
)
def test_nothing_is_opened_unless_all_parts_can_be_signed(
    people: People, s3_store: S3Store, second: PartsToSign
) -> None:
    version = _folder(people)

    with pytest.raises(Invalid):
        upload_signing.sign_parts(
            actor=people.member,
            version_id=version.pk,
            files=[PartsToSign("config.pbtxt", [1]), second],
        )

    assert open_uploads(s3_store) == []
    assert set(version.files.values_list("upload_id", flat=True)) == {""}


def test_promised_checksums_must_come_with_each_part(people: People, s3_store: S3Store) -> None:
    version = start(people, has_part_checksums=True)

    with pytest.raises(Invalid, match="part_checksums"):
        upload_signing.sign_parts(
            actor=people.member, version_id=version.pk, files=[PartsToSign("", [1])]
        )


def test_signed_addresses_take_exactly_the_bytes_of_their_part(
    people: People, s3_store: S3Store
) -> None:
    version = start(people, size_bytes=20 * MIB + 7)
    plan = file_uploads.plan_of(version.files.get())
    numbers = range(1, plan.count + 1)

    signed = upload_signing.sign_parts(
        actor=people.named("member"), version_id=version.pk, files=[PartsToSign("", numbers)]
    )

    for part in signed:
        query = parse_qs(urlsplit(part.url).query)
        assert query["X-Amz-SignedHeaders"] == ["content-length;host"]
        assert _signature(s3_store, part.url, part.size_bytes) == query["X-Amz-Signature"][0]
        assert _signature(s3_store, part.url, part.size_bytes + 1) != query["X-Amz-Signature"][0]


def _signature(store: S3Store, url: str, length: int) -> str:
    """What an S3 server works out for a PUT of so many bytes: Signature Version 4 by its rules."""
    address = urlsplit(url)
    query = sorted(item for item in address.query.split("&") if "X-Amz-Signature=" not in item)
    known = parse_qs(address.query)
    headers = f"content-length:{length}\nhost:{address.netloc}\n"
    parts = ("PUT", address.path, "&".join(query), headers, "content-length;host")
    canonical = "\n".join((*parts, "UNSIGNED-PAYLOAD"))
    scope = known["X-Amz-Credential"][0].partition("/")[2]
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", known["X-Amz-Date"][0], scope, digest))
    key = f"AWS4{os.environ['AWS_SECRET_ACCESS_KEY']}".encode()
    for word in scope.split("/"):
        key = hmac.digest(key, word.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()
