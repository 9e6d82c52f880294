"""A scene that is copied is the one that the services make, and anything of a test's own has it made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as portal_settings
from django.core.cache import cache
from django.db import connection, transaction

from deployments.models import Deployment
from deployments.registry.gateways import object_store
from portal.accounts.models import Team
from portal.core import clock
from tests.deployments import canaries, kept_scenes, world
from tests.deployments.kept_scenes import Stage
from tests.deployments.recording_cluster import RecordingCluster
from tests.deployments.world import Clock, World, connect, make_world
from tests.fixtures import kept_rows

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Scene:
    world: World
    patches: pytest.MonkeyPatch


@dataclass
class Theatre:
    """Each test that begins with a world, in a transaction of its own that is taken back."""

    request: pytest.FixtureRequest
    made: list[str]

    @contextmanager
    def test(self) -> Iterator[Scene]:
        with pytest.MonkeyPatch.context() as patches, transaction.atomic():
            cluster, moved = RecordingCluster(), Clock(clock.now())
            connect(cluster, patches)
            moved.set(patches)
            stage = Stage(cluster, moved, patches, self.request)
            begun = stage.make_world(lambda: self._make_world(cluster, moved))
            begun.stage = stage
            patches.setattr(object_store, "store", lambda: begun.store)
            yield Scene(begun, patches)
            transaction.set_rollback(True)

    def _make_world(self, cluster: RecordingCluster, moved: Clock) -> World:
        self.made.append("world")
        return make_world(cluster, moved)


@pytest.fixture
def theatre(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Theatre:
    if connection.vendor != "postgresql":
        pytest.skip("scenes are kept on PostgreSQL only")
    theatre = Theatre(request, [])
    serve = World._serve

    def counted(self: World, **changed: Any) -> Deployment:
        theatre.made.append("serving")
        return serve(self, **changed)

    monkeypatch.setattr(World, "_serve", counted)
    monkeypatch.setattr(kept_scenes, "_kept", kept_scenes._Kept())
    return theatre


def _everything(scene: Scene, *made: Any) -> Any:
    """Rows of all tables, cluster, store, clock, what waits for the commit, and the objects returned."""
    world = scene.world
    objects = [
        [getattr(one, field.attname) for field in one._meta.concrete_fields]
        for one in (world.team, world.lead, world.version2, *made)
    ]
    waiting = [entry[1].__qualname__ for entry in connection.run_on_commit]
    parts = (world.cluster.objects, world.cluster.calls, vars(world.store), world.clock.at)
    return kept_rows.read(), parts, waiting, objects


def test_a_copy_has_the_rows_objects_and_wakeups_of_what_the_services_made(
    theatre: Theatre,
) -> None:
    seen = []
    for _ in range(2):
        with theatre.test() as scene:
            seen.append(_everything(scene, *canaries.start(scene.world)))

    assert theatre.made == ["world", "serving"]
    assert seen[0] == seen[1]
    assert len(seen[0][2]) > 10
    assert Deployment.objects.count() == 0


def test_the_services_go_on_from_a_copy_as_from_what_they_made(theatre: Theatre) -> None:
    calls = []
    for _ in range(2):
        with theatre.test() as scene:
            deployment, rollout = canaries.start(scene.world)
            canaries.soak(scene.world, deployment)
            canaries.serve(scene.world, deployment, 10)
            rollout.refresh_from_db()
            calls.append((scene.world.cluster.calls, rollout.phase, rollout.step_index))

    assert theatre.made == ["world", "serving"]
    assert calls[0] == calls[1]


def test_what_a_test_left_in_the_cache_does_not_meet_the_same_keys_again(theatre: Theatre) -> None:
    with theatre.test():
        cache.set("of-a-key-of-a-row", 1)

    with theatre.test():
        assert cache.get("of-a-key-of-a-row") is None


def _writes(scene: Scene) -> None:
    Team.objects.filter(slug="vision").update(quota_gpus=7)


def _moves_the_clock(scene: Scene) -> None:
    scene.world.clock.move(1)


def _changes_the_cluster(scene: Scene) -> None:
    scene.world.cluster.warn["Deployment"] = "deprecated"


def _changes_the_store(scene: Scene) -> None:
    scene.world.store.sizes["another"] = 1


def _has_pods_answer(scene: Scene) -> None:
    scene.world.cluster.pods = lambda request: pytest.fail("is not asked")


def _replaces_a_part(scene: Scene) -> None:
    scene.patches.setattr(world, "T", world.T)


def _sets_a_variable(scene: Scene) -> None:
    scene.patches.setenv("SLIPWAY_NOTHING", "1")


def _rolls_back(scene: Scene) -> None:
    with transaction.atomic():
        transaction.set_rollback(True)


@pytest.mark.parametrize(
    "does",
    [
        _writes,
        _moves_the_clock,
        _changes_the_cluster,
        _changes_the_store,
        _has_pods_answer,
        _replaces_a_part,
        _sets_a_variable,
        _rolls_back,
    ],
)
def test_after_anything_of_its_own_a_test_has_the_scene_made(
    does: Callable[[Scene], None], theatre: Theatre
) -> None:
    with theatre.test() as scene:
        scene.world.serving()

    with theatre.test() as scene:
        does(scene)
        scene.world.serving()

    assert theatre.made == ["world", "serving", "serving"]


def test_after_a_changed_setting_a_test_has_its_scene_made(theatre: Theatre, settings: Any) -> None:
    with theatre.test() as scene:
        scene.world.serving()

    with theatre.test() as scene:
        settings.SLIPWAY_S3_BUCKET = f"{portal_settings.SLIPWAY_S3_BUCKET}-2"
        scene.world.serving()

    assert theatre.made == ["world", "serving", "serving"]


def test_other_arguments_are_another_scene_and_a_second_one_is_made(theatre: Theatre) -> None:
    for _ in range(2):
        with theatre.test() as scene:
            scene.world.serving(environment="staging")
            scene.world.serving(name="second")
    with theatre.test() as scene:
        assert scene.world.serving().environment == "production"

    assert theatre.made == ["world", "serving", "serving", "serving", "serving"]


def test_a_world_after_rows_of_its_test_is_made_and_so_is_what_it_has(theatre: Theatre) -> None:
    with theatre.test():
        pass

    with transaction.atomic():
        Team.objects.create(slug="earlier", name="Earlier", created_at=clock.now())
        with theatre.test() as scene:
            scene.world.serving()
        transaction.set_rollback(True)

    assert theatre.made == ["world", "world", "serving"]


def test_a_world_at_another_time_and_after_tables_were_emptied_is_made_anew(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    with theatre.test():
        pass
    kept_rows.forget()
    with theatre.test() as scene:
        at = scene.world.clock.at

    assert theatre.made == ["world", "world"]

    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + timedelta(hours=2))
    with theatre.test() as scene:
        assert scene.world.clock.at > at + timedelta(hours=1)

    assert theatre.made == ["world", "world", "world"]
