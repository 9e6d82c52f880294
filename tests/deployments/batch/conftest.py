from __future__ import annotations

from typing import Any

import pytest

from deployments.batch.domain import worker_program
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import S3Store
from tests.deployments.batch.bench import Bench
from tests.deployments.world import World


@pytest.fixture
def bench(world: World, s3_store: S3Store, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Bench:
    # A thread that would outlive the test.
    monkeypatch.setattr(worker_program.Worker, "keep_links_fresh", lambda _: None)
    return Bench(world, s3_store.client, settings.SLIPWAY_S3_BUCKET)


@pytest.fixture
def real_store(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """For uploads: the world keeps artifacts in memory."""
    monkeypatch.setattr(object_store, "store", object_store.s3_store)
