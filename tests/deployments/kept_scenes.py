"""What many tests begin with, made by the services once in a process and kept as rows.

`world.serving()` is some three hundred queries and as many translations to SQL. The first test of a
process makes the deployment so; for those after it the same rows are copied, with the same keys.
A scene is made anew wherever anything that it could depend on is not as it was: a test that wrote,
moved the clock, changed the cluster, the store, a setting or a part of the portal before.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest
import redis
from django.conf import settings
from django.db import connection

from tests.deployments.memory_store import MemoryStore
from tests.deployments.recording_cluster import RecordingCluster
from tests.fixtures import kept_rows
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.deployments.world import Clock, World

T = TypeVar("T")

# `clock.now` and `clients.factory`, then `object_store.store` too: by the fixtures of a world.
_PATCHES_BEFORE: Final = 2
_PATCHES: Final = 3
_NOW: Final = timedelta(minutes=1)
_YOUNG: Final = timedelta(hours=1)
_READS: Final = ("SELECT", "SAVEPOINT", "RELEASE")
_WORLD: Final = "world"


@dataclass(frozen=True, slots=True)
class _Scene:
    differences: tuple[kept_rows.Difference, ...]
    """From the scene before it: of the world from nothing, of all others from the world."""
    objects: bytes
    """Pickled: what was made, and the states of cluster and store."""
    at: datetime
    on_commit: tuple[Any, ...]


class _Kept:
    """Of this process."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.scenes: dict[str, _Scene] = {}
        self.world_rows: kept_rows.Rows = {}
        self.times_emptied = kept_rows.times_emptied()


_kept = _Kept()


def _empty_cache(address: str) -> None:
    """Of the keys of rows that the test before had, and this one has again."""
    _cache_at(address).flushdb()


@cache
def _cache_at(address: str) -> redis.Redis:
    """With the patience of tests: the portal gives its cache two seconds."""
    return redis.Redis.from_url(address, socket_timeout=PATIENCE_SECONDS)


class Stage:
    """One test, whose scenes are kept for as long as it did nothing of its own."""

    def __init__(
        self,
        cluster: RecordingCluster,
        moved: Clock,
        monkeypatch: pytest.MonkeyPatch,
        request: pytest.FixtureRequest,
    ) -> None:
        self._cluster, self._clock = cluster, moved
        self._monkeypatch, self._request = monkeypatch, request
        self._store: MemoryStore | None = None
        self._untouched: bytes | None = None

    def make_world(self, make: Callable[[], World]) -> World:
        if not self._may_keep(_PATCHES_BEFORE) or not kept_rows.is_unwritten():
            return make()
        connection.execute_wrappers.append(self._watch)
        self._request.addfinalizer(self._leave)
        _empty_cache(settings.SLIPWAY_REDIS_URL)
        scene = _kept.scenes.get(_WORLD)
        is_current = _kept.times_emptied == kept_rows.times_emptied()
        if scene is not None and is_current and abs(scene.at - self._clock.at) < _YOUNG:
            made: World = self._copy(scene)
            made.cluster, made.clock = self._cluster, self._clock
        else:
            made = self._record_world(make)
        self._store = made.store
        self._untouched = self._state()
        return made

    def _record_world(self, make: Callable[[], World]) -> World:
        _kept.begin()
        before, waiting = kept_rows.read(), len(connection.run_on_commit)
        made = make()
        _kept.world_rows = kept_rows.read()
        differences = kept_rows.compare(before, _kept.world_rows)
        self._keep(_WORLD, made, made.store, differences, waiting)
        return made

    def play(self, key: str, make: Callable[[], T]) -> T:
        """What `make` makes of a world that nothing was done to; `key` says all that it depends on."""
        if " at 0x" in key or not self.is_untouched():
            return make()
        scene = _kept.scenes.get(key)
        if scene is not None:
            self._untouched = None
            made: T = self._copy(scene)
            return made
        waiting = len(connection.run_on_commit)
        made = make()
        self._untouched = None
        differences = kept_rows.compare(_kept.world_rows, kept_rows.read())
        self._keep(key, made, self._store, differences, waiting)
        return made

    def is_untouched(self) -> bool:
        """Whether the next scene may be a copy."""
        untouched = self._untouched
        return untouched is not None and self._may_keep(_PATCHES) and self._state() == untouched

    def _may_keep(self, patches: int) -> bool:
        names = self._request.fixturenames
        changed = (
            self._request.getfixturevalue("settings")._to_restore if "settings" in names else ()
        )
        made = self._monkeypatch
        return (
            type(self._cluster) is RecordingCluster
            and len(made._setattr) == patches
            and not made._setitem
            and made._cwd is None
            and made._savesyspath is None
            and not changed
            and (patches == _PATCHES or abs(datetime.now(UTC) - self._clock.at) < _NOW)
        )

    def _state(self) -> bytes | None:
        """None where a test put a function of its own into one of them."""
        try:
            return pickle.dumps((vars(self._cluster), vars(self._store), self._clock.at))
        except (pickle.PicklingError, AttributeError):
            return None

    def _keep(self, key: str, made: Any, store: Any, differences: Any, waiting: int) -> None:
        if differences is None:
            return
        objects = pickle.dumps((made, vars(self._cluster), vars(store)))
        later = tuple(connection.run_on_commit[waiting:])
        _kept.scenes[key] = _Scene(differences, objects, self._clock.at, later)

    def _copy(self, scene: _Scene) -> Any:
        kept_rows.apply(scene.differences)
        made, cluster, store = pickle.loads(scene.objects)
        vars(self._cluster).update(cluster)
        if self._store is not None:
            vars(self._store).update(store)
        self._clock.at = scene.at
        for _, *rest in scene.on_commit:
            connection.run_on_commit.append((set(connection.savepoint_ids), *rest))
        return made

    def _watch(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if self._untouched is not None and not sql.lstrip().startswith(_READS):
            self._untouched = None
        return execute(sql, params, many, context)

    def _leave(self) -> None:
        connection.execute_wrappers.remove(self._watch)
