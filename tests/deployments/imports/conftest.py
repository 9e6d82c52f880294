"""A team that imports, a bucket to import from, and a worker that can die."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from deployments.imports.services import advance, imports
from deployments.imports.services.imports import ImportDraft
from deployments.models import Import, ModelVersion
from deployments.registry.gateways import sandbox
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import verification
from portal.core import clock, leases
from tests.deployments import recorded_sandbox
from tests.deployments.imports.mlflow_registry import mlflow_registry
from tests.deployments.imports.model_server import model_server
from tests.deployments.uploading import People

__all__ = ["mlflow_registry", "model_server"]
Start = Callable[..., Import]


class Death(BaseException):
    """The process is gone: nothing catches it."""


class SourceOfModels:
    """A bucket of somebody else in the same store."""

    def __init__(self, store: S3Store, *, is_versioned: bool) -> None:
        self.client: Any = store.client
        self.name = f"source-{secrets.token_hex(4)}"
        self.client.create_bucket(Bucket=self.name)
        if is_versioned:
            self.client.put_bucket_versioning(
                Bucket=self.name, VersioningConfiguration={"Status": "Enabled"}
            )

    def put(self, key: str, body: bytes) -> str:
        answer = self.client.put_object(Bucket=self.name, Key=key, Body=body)
        return str(answer.get("VersionId", ""))


@pytest.fixture
def source(s3_store: S3Store, settings: Any) -> SourceOfModels:
    bucket = SourceOfModels(s3_store, is_versioned=True)
    settings.SLIPWAY_IMPORT_S3 = [f"s3://{bucket.name}"]
    return bucket


@pytest.fixture
def start(people: People, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.setattr(sandbox, "run", recorded_sandbox.run)

    def run(address: str, *, model: str = "detector", **draft: Any) -> Import:
        return imports.start(
            actor=people.member,
            team_slug="vision",
            model_name=model,
            draft=ImportDraft(address, **draft),
        )

    return run


def worked(job: Import) -> Import:
    """As the worker leaves it after one pass."""
    advance.advance(job.pk)
    return Import.objects.select_related("version__model__team").get(pk=job.pk)


def verified(job: Import) -> ModelVersion:
    verification.advance(job.version_id)
    return ModelVersion.objects.get(pk=job.version_id)


def forget_leases() -> None:
    """As after the time of a lease, or of a wait."""
    for model in (Import, ModelVersion):
        model.objects.filter(next_check_at__isnull=False).update(
            lease_until=None, lease_token="", next_check_at=clock.now()
        )


def run_until_over(job: Import, *, passes: int = 20) -> ModelVersion:
    """What the sweeps do, until nothing is due."""
    for _ in range(passes):
        forget_leases()
        if not leases.due(Import) and not leases.due(ModelVersion):
            break
        for pk in leases.due(Import):
            advance.advance(pk)
        for pk in leases.due(ModelVersion):
            verification.advance(pk)
    return ModelVersion.objects.get(pk=job.version_id)


@contextmanager
def calls_of(client: Any, *, dies_at: int = 0, is_after: bool = False) -> Iterator[list[str]]:
    """The operations that reach the store. At the one with this number, the worker dies."""
    calls: list[str] = []

    def before(model: Any, **_: Any) -> None:
        calls.append(model.name)
        if len(calls) == dies_at and not is_after:
            raise Death

    def after(**_: Any) -> None:
        if len(calls) == dies_at and is_after:
            raise Death

    client.meta.events.register("before-call.s3", before)
    client.meta.events.register("after-call.s3", after)
    try:
        yield calls
    finally:
        client.meta.events.unregister("before-call.s3", before)
        client.meta.events.unregister("after-call.s3", after)
