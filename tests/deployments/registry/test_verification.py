from __future__ import annotations

import base64
import hashlib
import pickle
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from deployments.manifests.services import serving_bytes
from deployments.models import ModelVersion
from deployments.registry.domain import serving_objects
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import upload_signing, uploads, verification
from deployments.registry.services.upload_signing import PartsToSign
from deployments.states import VersionState
from portal.audit.models import AuditEvent
from portal.core import clock, leases
from tests import plain_http
from tests.deployments import onnx_models
from tests.deployments.uploading import People, Upload, draft_of, versions_in

pytestmark = pytest.mark.django_db


def test_an_onnx_file_becomes_a_ready_version_with_its_serving_repository(
    verified: Upload, s3_store: S3Store
) -> None:
    body = onnx_models.linear()
    sha256 = hashlib.sha256(body).hexdigest()

    version = verified(body, sha256=sha256, metadata={"accuracy": 0.9})

    assert version.state == VersionState.READY, version.state_reason
    assert version.sha256 == sha256
    assert version.files.get().s3_version_id
    assert version.signature["inputs"] == [{"name": "x", "dtype": "FP32", "dims": [-1, 4]}]
    assert version.signature["outputs"] == [{"name": "y", "dtype": "FP32", "dims": [-1, 2]}]
    assert version.signature["max_batch_size"] == 32
    assert version.signature["parameter_count"] == 8
    assert version.vram_estimate_mib == 464
    prefix = version.repository_prefix
    assert prefix.startswith(f"repositories/vision/detector/1/{sha256[:12]}-")
    assert s3_store.list_keys(prefix) == [
        f"{prefix}detector/1/model.onnx",
        f"{prefix}detector/config.pbtxt",
    ]
    key = f"{prefix}detector/1/model.onnx"
    assert b"".join(s3_store.read(key, s3_store.head(key).version_id)) == body
    assert [row["ok"] for row in version.checks] == [*[True] * 9, None]
    assert version.checks[-2]["detail"].endswith(
        "exactly this file and verified; locked in the bucket"
    )
    laid = serving_objects.from_json(version.laid_out)
    assert [(item.key, item.version_id, item.etag, item.size_bytes) for item in laid] == [
        (stored.key, stored.version_id, stored.etag, stored.size_bytes)
        for stored in s3_store.list_newest(prefix)
    ]
    assert laid[0].sha256 == sha256
    assert serving_bytes.compare_version(version, serving_bytes.Bucket()) == []
    assert version.next_check_at is None
    assert list(AuditEvent.objects.order_by("id").values_list("action", flat=True)) == [
        "model.created",
        "version.upload_started",
        "version.uploaded",
        "version.ready",
    ]


def test_an_overwritten_serving_object_is_detected(verified: Upload, s3_store: S3Store) -> None:
    version = verified(onnx_models.linear())
    key = f"{version.repository_prefix}detector/1/model.onnx"
    approved = s3_store.head(key)
    same = b"".join(s3_store.read(key, approved.version_id))

    # The same bytes again are another version too: only the portal writes here.
    s3_store.put(key, same, content_type="application/octet-stream")
    comparison = serving_bytes.compare_version(version, serving_bytes.Bucket())
    intruder = s3_store.head(key).version_id
    s3_store.client.delete_object(Bucket=s3_store.bucket, Key=key)
    hidden = serving_bytes.compare_version(version, serving_bytes.Bucket())

    assert comparison == [f"{key} was overwritten"]
    assert hidden == [f"{key} was deleted"]
    markers = s3_store.client.list_object_versions(Bucket=s3_store.bucket)["DeleteMarkers"]
    for version_id in (markers[0]["VersionId"], intruder):
        s3_store.client.delete_object(Bucket=s3_store.bucket, Key=key, VersionId=version_id)
    assert serving_bytes.compare_version(version, serving_bytes.Bucket()) == []


def assert_failed_and_gone(version: ModelVersion, store: S3Store, message: str) -> None:
    assert version.state == VersionState.FAILED
    assert message in version.state_reason
    assert version.next_check_at is not None, "the removal is due"
    verification.advance(version.pk)
    version.refresh_from_db()
    assert versions_in(store) == []
    assert version.next_check_at is None
    assert list(version.files.values_list("s3_version_id", "upload_id")) == [("", "")]
    verification.advance(version.pk)


def test_a_wrong_declared_digest_fails_and_leaves_nothing(
    verified: Upload, s3_store: S3Store
) -> None:
    version = verified(onnx_models.linear(), sha256="0" * 64)

    assert_failed_and_gone(version, s3_store, "changed during upload")
    assert [row["ok"] for row in version.checks] == [
        True,
        True,
        False,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
    ]
    assert version.checks[-1]["detail"] == "not tried"


def test_a_part_with_a_lying_checksum_is_caught_by_the_digest(
    people: People, s3_store: S3Store
) -> None:
    """moto stores such a part; real S3 refuses it. Either way it never becomes ready."""
    body = onnx_models.linear()
    tampered = body[:-1] + bytes([body[-1] ^ 1])
    sha256 = hashlib.sha256(body)
    version = uploads.start(
        actor=people.member,
        team_slug="vision",
        model_name="detector",
        draft=draft_of(
            "detector.onnx", len(body), sha256=sha256.hexdigest(), has_part_checksums=True
        ),
    )
    checksum = base64.b64encode(sha256.digest()).decode()
    (part,) = upload_signing.sign_parts(
        actor=people.member, version_id=version.pk, files=[PartsToSign("", [1], {1: checksum})]
    )
    assert part.headers == {"x-amz-checksum-sha256": checksum}
    plain_http.client.put(part.url, content=tampered, headers=dict(part.headers)).raise_for_status()
    uploads.complete(actor=people.member, version_id=version.pk)
    verification.advance(version.pk)

    version.refresh_from_db()
    assert_failed_and_gone(version, s3_store, "changed during upload")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"Dear team, please find the model attached.", "an unsupported format"),
        (onnx_models.linear()[:-30], "valid ONNX model"),
        (onnx_models.with_external_data(), "weights.bin"),
        (b"\x02\0\0\0\0\0\0\0{}", "safetensors"),
    ],
)
def test_a_file_that_cannot_be_served_fails_with_a_message_and_leaves_nothing(
    verified: Upload, s3_store: S3Store, body: bytes, message: str
) -> None:
    assert_failed_and_gone(verified(body), s3_store, message)


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("1",)


def test_a_pickle_that_calls_something_is_quarantined_by_name(
    verified: Upload, s3_store: S3Store
) -> None:
    version = verified(pickle.dumps(Evil()), filename="model.pkl")

    assert version.state == VersionState.QUARANTINED
    assert "builtins.eval" in version.state_reason
    assert version.repository_prefix == ""
    assert [key for key in versions_in(s3_store) if key.startswith("repositories/")] == []


def test_a_harmless_pickle_is_not_served_either(verified: Upload, s3_store: S3Store) -> None:
    version = verified(pickle.dumps({"weights": [1.0]}), filename="model.pkl")

    assert version.state == VersionState.QUARANTINED
    assert "Export the model to ONNX" in version.state_reason


def test_custom_operators_are_quarantined_with_everything_else_read(
    verified: Upload, s3_store: S3Store
) -> None:
    version = verified(onnx_models.linear(domain="acme.ops"))

    assert version.state == VersionState.QUARANTINED
    assert "acme.ops" in version.state_reason
    assert version.repository_prefix
    assert version.vram_estimate_mib == 464


def test_the_same_bytes_twice_are_noted_on_the_check(verified: Upload, s3_store: S3Store) -> None:
    verified(onnx_models.linear())

    second = verified(onnx_models.linear())

    assert second.state == VersionState.READY
    assert "identical to version 1" in second.checks[2]["detail"]
    assert second.repository_prefix.startswith("repositories/vision/detector/2/")


def test_a_second_run_changes_nothing(verified: Upload, s3_store: S3Store) -> None:
    version = verified(onnx_models.linear())
    before = (versions_in(s3_store), AuditEvent.objects.count())

    verification.advance(version.pk)
    leases.nudge(ModelVersion, version.pk)
    verification.advance(version.pk)

    again = ModelVersion.objects.get()
    assert again.state == VersionState.READY
    assert (versions_in(s3_store), AuditEvent.objects.count()) == before


def test_a_store_that_does_not_answer_only_delays(
    upload: Upload, s3_store: S3Store, settings: Any
) -> None:
    version = upload(onnx_models.linear())
    address = settings.SLIPWAY_S3_ENDPOINT_URL
    settings.SLIPWAY_S3_ENDPOINT_URL = "http://127.0.0.1:9"

    verification.advance(version.pk)

    version.refresh_from_db()
    assert (version.state, version.check_failures) == (VersionState.VERIFYING, 1)
    assert version.lease_until is None
    settings.SLIPWAY_S3_ENDPOINT_URL = address
    verification.advance(version.pk)
    version.refresh_from_db()
    assert version.state == VersionState.READY


def test_verification_that_never_ends_is_ended(upload: Upload, s3_store: S3Store) -> None:
    version = upload(onnx_models.linear())

    with time_machine.travel(clock.now() + timedelta(hours=2)):
        verification.advance(version.pk)

        version.refresh_from_db()
        assert_failed_and_gone(version, s3_store, "did not finish within")


def test_settings_of_a_revision_are_compared_by_content(s3_store: S3Store) -> None:
    key, body = "repositories/vision/detector/1/ab/detector/configs/slipway-1.pbtxt", b"max: 8"

    def differences(*, is_laid_out: bool) -> list[str]:
        return serving_bytes._compare_settings(s3_store, {key: body}, is_laid_out=is_laid_out)

    assert differences(is_laid_out=False) == []
    assert differences(is_laid_out=True) == [f"{key} was deleted"]
    s3_store.put(key, body, content_type="text/plain")
    assert differences(is_laid_out=True) == []
    s3_store.put(key, b"max: 9", content_type="text/plain")
    assert differences(is_laid_out=False) == [f"{key} was overwritten"]
