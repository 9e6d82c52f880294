from __future__ import annotations

import base64
import hashlib
import pickle
from datetime import timedelta
from typing import Any

import httpx
import pytest
import time_machine

from deployments.domain.states import VersionState
from deployments.gateways import artifacts
from deployments.gateways.artifacts import S3Store
from deployments.models import ModelVersion
from deployments.services import uploads, verification
from deployments.services.checklist import LEASE_SECONDS
from deployments.services.upload_drafts import UploadDraft
from portal.audit.models import AuditEvent
from portal.core import clock, leases
from tests.deployments.registry import onnx_models
from tests.deployments.registry.conftest import People, Upload
from tests.deployments.registry.crashing_store import CrashingStore, Death

pytestmark = pytest.mark.django_db


def versions_in(store: S3Store) -> list[str]:
    answer = store.client.list_object_versions(Bucket=store.bucket)
    rows = [*answer.get("Versions", []), *answer.get("DeleteMarkers", [])]
    return sorted(row["Key"] for row in rows)


def test_an_onnx_file_becomes_a_ready_version_with_its_serving_repository(
    verified: Upload, s3_store: S3Store
) -> None:
    body = onnx_models.linear()
    sha256 = hashlib.sha256(body).hexdigest()

    version = verified(body, sha256=sha256, metadata={"accuracy": 0.9})

    assert version.state == VersionState.READY, version.state_reason
    assert version.sha256 == sha256
    assert version.s3_version_id
    assert version.signature["inputs"] == [{"name": "x", "dtype": "FP32", "dims": [-1, 4]}]
    assert version.signature["outputs"] == [{"name": "y", "dtype": "FP32", "dims": [-1, 2]}]
    assert version.signature["max_batch_size"] == 32
    assert version.signature["parameter_count"] == 8
    assert version.vram_estimate_mib == 464
    prefix = f"repositories/vision/detector/1/{sha256[:12]}/"
    assert version.repository_prefix == prefix
    assert s3_store.list_keys(prefix) == [
        f"{prefix}detector/1/model.onnx",
        f"{prefix}detector/config.pbtxt",
    ]
    key = f"{prefix}detector/1/model.onnx"
    assert b"".join(s3_store.read(key, s3_store.head(key).version_id)) == body
    assert [row["ok"] for row in version.checks] == [True] * 7
    assert version.next_check_at is None
    assert list(AuditEvent.objects.order_by("id").values_list("action", flat=True)) == [
        "model.created",
        "version.upload_started",
        "version.uploaded",
        "version.ready",
    ]


def assert_failed_and_gone(version: ModelVersion, store: S3Store, words: str) -> None:
    assert version.state == VersionState.FAILED
    assert words in version.state_reason
    assert version.next_check_at is not None, "the removal is due"
    verification.advance(version.pk)
    version.refresh_from_db()
    assert versions_in(store) == []
    assert (version.s3_version_id, version.upload_id, version.next_check_at) == ("", "", None)
    verification.advance(version.pk)


def test_a_wrong_declared_digest_fails_and_leaves_nothing(
    verified: Upload, s3_store: S3Store
) -> None:
    version = verified(onnx_models.linear(), sha256="0" * 64)

    assert_failed_and_gone(version, s3_store, "changed on the way")
    assert [row["ok"] for row in version.checks] == [True, True, False, None, None, None, None]
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
        draft=UploadDraft(
            "detector.onnx", len(body), sha256=sha256.hexdigest(), has_part_checksums=True
        ),
    )
    checksum = base64.b64encode(sha256.digest()).decode()
    (part,) = uploads.sign_parts(
        actor=people.member, version_id=version.pk, numbers=[1], checksums={1: checksum}
    )
    assert part.headers == {"x-amz-checksum-sha256": checksum}
    httpx.put(part.url, content=tampered, headers=dict(part.headers)).raise_for_status()
    uploads.complete(actor=people.member, version_id=version.pk)
    verification.advance(version.pk)

    version.refresh_from_db()
    assert_failed_and_gone(version, s3_store, "changed on the way")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"Dear team, please find the model attached.", "no model format"),
        (onnx_models.linear()[:-30], "no ONNX model"),
        (onnx_models.with_external_data(), "weights.bin"),
        (b"\x10\0\0\0\0\0\0\0{}", "safetensors"),
    ],
)
def test_a_file_that_cannot_be_served_fails_in_words_and_leaves_nothing(
    verified: Upload, s3_store: S3Store, body: bytes, words: str
) -> None:
    assert_failed_and_gone(verified(body), s3_store, words)


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
    assert "already version 1" in second.checks[2]["detail"]
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


def test_a_worker_that_holds_the_row_keeps_others_out(upload: Upload, s3_store: S3Store) -> None:
    version = upload(onnx_models.linear())
    assert leases.claim(ModelVersion, version.pk) is not None

    verification.advance(version.pk)

    assert ModelVersion.objects.get().state == VersionState.VERIFYING


@pytest.mark.parametrize("is_after", [False, True])
def test_a_worker_may_die_around_any_call_and_the_next_one_finishes(
    upload: Upload, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch, is_after: bool
) -> None:
    died_at: list[str] = []
    for at_call in range(1, 40):
        version = upload(onnx_models.linear(scale=at_call), model="detector")
        store = CrashingStore(s3_store, at_call=at_call, is_after=is_after)
        with monkeypatch.context() as patched:
            patched.setattr(artifacts, "store", lambda store=store: store)
            # A process that is gone gives no lease back.
            patched.setattr(leases, "back_off", lambda *args, **kwargs: True)
            try:
                verification.advance(version.pk)
            except Death as death:
                died_at.append(str(death))
            else:
                break
        with time_machine.travel(clock.now() + timedelta(seconds=LEASE_SECONDS + 1)):
            assert version.pk in leases.due(ModelVersion)
            verification.advance(version.pk)

        version.refresh_from_db()
        assert version.state == VersionState.READY, at_call
        prefix = version.repository_prefix
        assert len(s3_store.list_keys(prefix)) == 2
        key = f"{prefix}detector/1/model.onnx"
        stored = b"".join(s3_store.read(key, s3_store.head(key).version_id))
        assert hashlib.sha256(stored).hexdigest() == version.sha256
        assert (
            AuditEvent.objects.filter(action="version.ready", object_id=str(version.pk)).count()
            == 1
        )

    assert {"head", "read_head", "read", "copy", "put", "list_keys"} <= set(died_at)
    assert died_at == store.calls


def test_the_removal_of_a_failed_version_survives_death(
    verified: Upload, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at_call in (1, 2):
        version = verified(b"no model at all", filename=f"{at_call}.txt")
        store = CrashingStore(s3_store, at_call=at_call, is_after=True)
        with monkeypatch.context() as patched:
            patched.setattr(artifacts, "store", lambda store=store: store)
            with pytest.raises(Death):
                verification.advance(version.pk)
        with time_machine.travel(clock.now() + timedelta(minutes=5)):
            verification.advance(version.pk)

        version.refresh_from_db()
        assert (version.s3_version_id, version.next_check_at) == ("", None)
    assert versions_in(s3_store) == []


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
        assert_failed_and_gone(version, s3_store, "did not end within")
