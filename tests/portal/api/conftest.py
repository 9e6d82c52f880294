"""The world of delivery tests, with one of everything that an address of the API can name."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from pytest_django import DjangoDbBlocker

from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import S3Store, StoredObject
from fleet.clusters.domain.node_groups import NodeGroup
from fleet.clusters.services import node_groups
from fleet.kube.domain.errors import ObjectNotFound
from fleet.kube.services import clients
from portal.accounts.models import User
from portal.core import clock
from portal.ui import slots
from tests.deployments.memory_store import MemoryStore
from tests.deployments.recording_cluster import RecordingCluster
from tests.deployments.world import (
    Clock,
    World,
    cluster_calls,
    connect,
    make_world,
    moving_clock,
    world,
)
from tests.portal.api.full_world import FullWorld, fill

__all__ = ["World", "cluster_calls", "moving_clock", "world"]


class LaidOut:
    """The real store, in which the versions of the world seem to lie as well."""

    def __init__(self, real: S3Store, seeming: MemoryStore) -> None:
        self._real, self._seeming = real, seeming

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def head(self, key: str, version_id: str = "") -> StoredObject:
        seems = key in self._seeming.sizes
        return self._seeming.head(key) if seems else self._real.head(key, version_id)

    def list_keys(self, prefix: str) -> list[str]:
        return self._seeming.list_keys(prefix) or self._real.list_keys(prefix)

    def list_newest(self, prefix: str) -> list[StoredObject]:
        return self._seeming.list_newest(prefix) or self._real.list_newest(prefix)


class NoGroups:
    """AWS has no managed node groups."""

    def __init__(self, *_: str) -> None:
        pass

    def list_names(self) -> list[str]:
        return []

    def describe(self, group: str) -> NodeGroup:
        raise ObjectNotFound(f"No node group found for name: {group}.")


@pytest.fixture
def full_world(
    module_world: FullWorld, db: None, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FullWorld]:
    """As the module's, whatever the test before did to it."""
    full = copy.deepcopy(module_world)
    # Limits count by the ids of people, which are those of the test before.
    cache.clear()
    connect(full.world.cluster, monkeypatch)
    full.world.clock.set(monkeypatch)
    monkeypatch.setattr(node_groups, "factory", NoGroups)
    area = f"s3://{s3_store.bucket}/batch/vision"
    full.names |= {"batch_input": f"{area}/rows.jsonl", "batch_output": f"{area}/another/"}
    store = LaidOut(s3_store, full.world.store)
    monkeypatch.setattr(object_store, "store", lambda: store)
    yield full
    clients.forget()


@pytest.fixture
def frame_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the badges of the frame once for each person. For tests that take back what each request writes: then
    every later count would be the same, and counting is a quarter of a page.
    """
    counted: dict[tuple[Any, ...], Any] = {}

    def keep(name: str) -> None:
        count = getattr(slots, name)

        def read(*arguments: Any) -> Any:
            key = (name, *(one.pk if isinstance(one, User) else one for one in arguments))
            if key not in counted:
                counted[key] = count(*arguments)
            return counted[key]

        monkeypatch.setattr(slots, name, read)

    for name in ("count_badge", "alert_count", "status_lines"):
        keep(name)


@pytest.fixture(scope="module")
def module_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[FullWorld]:
    """Made once, in a transaction around those of the tests: it costs as much as fifty requests."""
    rows = transaction.atomic()
    with django_db_blocker.unblock():
        rows.__enter__()
        with pytest.MonkeyPatch.context() as monkeypatch:
            made = make_world(RecordingCluster(), Clock(clock.now()))
            connect(made.cluster, monkeypatch)
            made.clock.set(monkeypatch)
            monkeypatch.setattr(object_store, "store", lambda: made.store)
            full = fill(made)
        clients.forget()
    yield full
    with django_db_blocker.unblock():
        transaction.set_rollback(True)
        rows.__exit__(None, None, None)
