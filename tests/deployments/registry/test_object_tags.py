"""Stored objects say to whom they belong: tags of exactly the verified VersionIds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from botocore.exceptions import ClientError

from deployments.models import ModelVersion
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import verification
from deployments.states import VersionState
from portal.core import clock
from tests.deployments import onnx_models
from tests.deployments.uploading import Upload

pytestmark = pytest.mark.django_db


def tags_of(store: S3Store, key: str, version_id: str) -> dict[str, str]:
    answer = store.client.get_object_tagging(Bucket=store.bucket, Key=key, VersionId=version_id)
    return {row["Key"]: row["Value"] for row in answer["TagSet"]}


class Refusal:
    """The real client, whose tagging answers with an error first."""

    def __init__(self, store: S3Store, code: str, status: int, *, times: int) -> None:
        self._write, self.code, self.status, self.times = (
            store.client.put_object_tagging,
            code,
            status,
            times,
        )

    def __call__(self, **request: object) -> Mapping[str, object]:
        self.times -= 1
        if self.times >= 0:
            raise ClientError(
                {
                    "Error": {"Code": self.code, "Message": "no"},
                    "ResponseMetadata": {"HTTPStatusCode": self.status},
                },
                "PutObjectTagging",
            )
        answer: Mapping[str, object] = self._write(**request)
        return answer


def test_every_object_of_a_ready_version_has_the_essentials(
    s3_store: S3Store, verified: Upload
) -> None:
    version = verified(onnx_models.linear())

    expected = {
        "team": "vision",
        "model": "detector",
        "version": "1",
        "sha256": version.sha256,
    }
    file = version.files.get()
    objects = [(file.key, file.s3_version_id)]
    objects += [(row["key"], row["version_id"]) for row in version.laid_out]
    assert len(objects) == 3
    for key, version_id in objects:
        assert tags_of(s3_store, key, version_id) == expected
    # Another VersionId of the same key is not touched.
    other = s3_store.put(file.key, b"other", content_type="text/plain")
    assert tags_of(s3_store, file.key, other) == {}


def test_a_store_that_does_not_answer_is_tried_again(
    s3_store: S3Store, verified: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = Refusal(s3_store, "InternalError", 500, times=1)
    monkeypatch.setattr(s3_store.client, "put_object_tagging", refusal)

    version = verified(onnx_models.linear())
    assert version.state == VersionState.VERIFYING

    ModelVersion.objects.update(next_check_at=clock.now())
    verification.advance(version.pk)
    version.refresh_from_db()
    assert version.state == VersionState.READY
    file = version.files.get()
    assert tags_of(s3_store, file.key, file.s3_version_id)["version"] == "1"


@pytest.mark.parametrize(
    ("code", "status", "note"),
    [
        ("AccessDenied", 403, "the store refused to tag them"),
        ("NotImplemented", 501, "the store has no tags"),
    ],
)
def test_a_store_without_tags_still_serves_and_the_page_says_so(
    s3_store: S3Store,
    verified: Upload,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    status: int,
    note: str,
) -> None:
    refusal = Refusal(s3_store, code, status, times=99)
    monkeypatch.setattr(s3_store.client, "put_object_tagging", refusal)

    version = verified(onnx_models.linear())

    assert version.state == VersionState.READY
    (step,) = (check for check in version.checks if check["name"] == "Serving repository")
    assert step["ok"] is True
    assert step["detail"].endswith(note)
