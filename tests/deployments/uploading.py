"""People, and a client that uploads the way a notebook does: through presigned URLs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from deployments.models import ModelVersion
from deployments.registry.gateways import sandbox
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import file_uploads, upload_signing, uploads, verification
from deployments.registry.services.upload_signing import PartsToSign
from deployments.registry.services.upload_validation import DraftFile, UploadDraft
from portal.accounts.models import Membership, Team, User
from portal.core import clock
from tests import plain_http
from tests.deployments import recorded_sandbox


@dataclass(frozen=True, slots=True)
class People:
    team: Team
    viewer: User
    member: User
    lead: User
    admin: User
    stranger: User

    def named(self, role: str) -> User:
        user: User = getattr(self, role)
        return user


@pytest.fixture
def people(db: None) -> People:
    vision, nlp = (
        Team.objects.create(
            slug=slug,
            name=slug.title(),
            created_at=clock.now(),
            monthly_budget_amount=Decimal(1000),
        )
        for slug in ("vision", "nlp")
    )
    users = {name: User.objects.create(username=name) for name in ("viewer", "member", "lead")}
    for name, user in users.items():
        Membership.objects.create(user=user, team=vision, role=name)
    stranger = User.objects.create(username="stranger")
    Membership.objects.create(user=stranger, team=nlp, role="lead")
    admin = User.objects.create(username="admin", is_platform_admin=True)
    return People(team=vision, admin=admin, stranger=stranger, **users)


Upload = Callable[..., ModelVersion]


def draft_of(
    filename: str, size_bytes: int, sha256: str = "", head: bytes = b"", **draft: Any
) -> UploadDraft:
    """Of an artifact of one file."""
    return UploadDraft(files=[DraftFile(filename, size_bytes, sha256, head)], **draft)


def send_parts(actor: User, version: ModelVersion, body: bytes, *, path: str = "") -> None:
    file = version.files.get(path=path) if path else version.files.get()
    plan = file_uploads.plan_of(file)
    urls = upload_signing.sign_parts(
        actor=actor,
        version_id=version.pk,
        files=[PartsToSign(path, list(range(1, plan.count + 1)))],
    )
    for part in urls:
        start = (part.number - 1) * plan.part_bytes
        plain_http.client.put(
            part.url, content=body[start : start + plan.part_bytes]
        ).raise_for_status()


@pytest.fixture
def upload(people: People, s3_store: object, monkeypatch: pytest.MonkeyPatch) -> Upload:
    """Start, send and complete; the version is then verifying. Several files are given by path."""
    monkeypatch.setattr(sandbox, "run", recorded_sandbox.run)

    def run(
        body: bytes | Mapping[str, bytes], *, model: str = "detector", **draft: Any
    ) -> ModelVersion:
        if isinstance(body, Mapping):
            files = [DraftFile(path, len(content)) for path, content in body.items()]
            draft_of_all = UploadDraft(files=files, **draft)
        else:
            fields = {"filename": "detector.onnx", "size_bytes": len(body), **draft}
            draft_of_all = draft_of(**fields)
            body = {fields["filename"]: body}
        version = uploads.start(
            actor=people.member, team_slug="vision", model_name=model, draft=draft_of_all
        )
        for path, content in body.items():
            send_parts(people.member, version, content, path=path)
        return uploads.complete(actor=people.member, version_id=version.pk)

    return run


@pytest.fixture
def verified(upload: Upload) -> Upload:
    """Upload and let the worker come by."""

    def run(body: bytes | Mapping[str, bytes], **draft: Any) -> ModelVersion:
        version = upload(body, **draft)
        verification.advance(version.pk)
        version.refresh_from_db()
        return version

    return run


def versions_in(store: S3Store) -> list[str]:
    answer = store.client.list_object_versions(Bucket=store.bucket)
    rows = [*answer.get("Versions", []), *answer.get("DeleteMarkers", [])]
    return sorted(row["Key"] for row in rows)
