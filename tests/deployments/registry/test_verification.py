from __future__ import annotations

import hashlib

import pytest

from deployments.domain.states import VersionState
from deployments.gateways.artifacts import S3Store
from portal.audit.models import AuditEvent
from tests.deployments.registry import onnx_models
from tests.deployments.registry.conftest import Upload

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
