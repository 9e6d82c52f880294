"""Requests of uploads as a client makes them, and what is left at the store."""

from typing import Any

from deployments.models import Model, ModelVersion
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import upload_signing, uploads
from deployments.registry.services.upload_signing import PartsToSign
from portal.audit.models import AuditEvent
from tests.deployments.uploading import People, draft_of

MIB = 2**20


def start(people: People, *, name: str = "detector", actor: str = "member", **draft: Any) -> Any:
    fields: dict[str, Any] = {"filename": "detector.onnx", "size_bytes": 20 * MIB} | draft
    return uploads.start(
        actor=people.named(actor),
        team_slug="vision",
        model_name=name,
        draft=draft_of(**fields),
    )


def sign(people: People, version: ModelVersion, numbers: list[int]) -> list[Any]:
    return list(
        upload_signing.sign_parts(
            actor=people.member, version_id=version.pk, files=[PartsToSign("", numbers)]
        )
    )


def open_uploads(store: S3Store) -> list[str]:
    answer = store.client.list_multipart_uploads(Bucket=store.bucket)
    return [row["Key"] for row in answer.get("Uploads", [])]


def assert_nothing_happened(store: S3Store) -> None:
    assert Model.objects.count() == ModelVersion.objects.count() == 0
    assert AuditEvent.objects.count() == 0
    assert open_uploads(store) == []
    assert store.list_keys("") == []
