"""The broker loses all that it holds: a real Valkey, a real Celery worker, beat's own schedule.

At beat's next tick approved changes are read from their rows, and applied once.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
import redis
from celery.beat import Scheduler
from celery.contrib.testing.worker import start_worker

from deployments.changes.services import decisions, requests
from deployments.lifecycle.services import stop
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.rollouts.services import actions
from deployments.states import ChangeState, DeploymentState
from portal.audit.models import AuditEvent
from portal.celery import app
from tests.deployments import canaries
from tests.deployments.world import World
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)
QUEUE = "delivery"
STEPS = [{"weight": weight, "soak_seconds": 0, "min_requests": 0} for weight in (10, 50)]


class Broker:
    """Valkey as the portal's workers use it. Other workers of the test run have other databases."""

    def __init__(self) -> None:
        self.client = redis.Redis.from_url(os.environ["SLIPWAY_REDIS_URL"])

    def flush(self) -> None:
        self.client.flushdb()

    def waiting(self) -> list[tuple[str, str]]:
        """Task and arguments of each message of the queue, the next one first."""
        heads = [json.loads(message)["headers"] for message in self.client.lrange(QUEUE, 0, -1)]
        return [(head["task"], head["argsrepr"]) for head in reversed(heads)]


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    made.flush()
    yield made
    made.flush()
    made.client.close()


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A worker sets the level of all loggers, to errors alone, and adds a handler of its own."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = [each for each in root.handlers if each in handlers]
    # With the ended worker's thread, so that its connection to the database is closed.
    gc.collect()


def beat_ticks() -> None:
    """Sends whatever beat's schedule holds, as beat does when it is due."""
    scheduler = Scheduler(app, lazy=True)
    scheduler.setup_schedule()
    for entry in scheduler.schedule.values():
        if app.conf.task_routes.get(entry.task, {"queue": QUEUE})["queue"] == QUEUE:
            scheduler.apply_async(entry, producer=None, advance=False)


def beat_until(is_so: Callable[[], bool], world: World) -> None:
    """Beat ticks, twice each time, so that every task also comes a second time for nothing."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, list(ChangeRequest.objects.values("kind", "state"))
        beat_ticks()
        beat_ticks()
        world.clock.move(5)
        time.sleep(0.1)


def is_on_the_cluster(world: World, *names: str) -> Callable[[], bool]:
    workloads = {f"{name}-r1" for name in names}
    return lambda: (
        workloads <= set(world.cluster.names("InferenceService"))
        and set(names) <= set(world.cluster.names("HTTPRoute"))
    )


def is_done(*pks: int) -> Callable[[], bool]:
    rows = ChangeRequest.objects.filter(pk__in=pks, state=ChangeState.DONE)
    return lambda: rows.count() == len(pks)


def is_in(state: DeploymentState, deployment: Deployment) -> Callable[[], bool]:
    return Deployment.objects.filter(pk=deployment.pk, state=state).exists


def approve(world: World, change: ChangeRequest) -> None:
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)


def test_approved_deployments_are_delivered_once_after_the_broker_lost_their_messages(
    world: World, broker: Broker
) -> None:
    changes = [
        requests.request_deploy(actor=world.member, draft=world.draft(name))
        for name in ("first", "second", "third")
    ]
    for change in changes:
        approve(world, change)
    sent = broker.waiting()

    broker.flush()

    expected = [("deployments.apply_change", f"({change.pk},)") for change in changes]
    assert [item for item in sent if item in expected] == expected
    assert broker.waiting() == []
    assert world.cluster.writes == []
    pks = [change.pk for change in changes]
    with start_worker(app, perform_ping_check=False, queues=[QUEUE]):
        beat_until(is_on_the_cluster(world, "first", "second", "third"), world)
        for name in ("first", "second", "third"):
            world.cluster.make_ready(f"{name}-r1")
        beat_until(is_done(*pks), world)
    writes = Counter(call for call in world.cluster.writes if call[1] == "InferenceService")
    assert writes == {
        ("apply", "InferenceService", f"{name}-r1"): 1 for name in ("first", "second", "third")
    }
    assert Revision.objects.count() == 3
    assert set(Deployment.objects.values_list("state", flat=True)) == {DeploymentState.READY}


def test_a_worker_that_was_connected_when_the_broker_lost_all_goes_on(
    world: World, broker: Broker
) -> None:
    with start_worker(app, perform_ping_check=False, queues=[QUEUE]):
        deployed = requests.request_deploy(actor=world.member, draft=world.draft("before"))
        approve(world, deployed)
        beat_until(is_on_the_cluster(world, "before"), world)

        broker.flush()

        asked = requests.request_deploy(actor=world.member, draft=world.draft("after"))
        approve(world, asked)
        beat_until(is_on_the_cluster(world, "after"), world)


def test_a_promotion_a_stop_and_a_retirement_under_way_each_happen_once(
    world: World, broker: Broker
) -> None:
    deployment, rollout = canaries.start(world, STEPS)
    canaries.serve(world, deployment, 10)
    others = {}
    for name in ("stopping", "retiring"):
        draft = world.draft(name, environment="staging")
        approve(world, requests.request_deploy(actor=world.member, draft=draft))
        world.work()
        world.cluster.make_ready(f"{name}-r1")
        others[name] = world.reconcile_now(Deployment.objects.get(name=name))
    retirement = requests.request_retire(actor=world.member, deployment_id=others["retiring"].pk)
    broker.flush()
    shown = canaries.view(world, rollout)
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    stop.stop(actor=world.member, deployment_id=others["stopping"].pk)
    approve(world, retirement)
    assert {task for task, _ in broker.waiting()} == {
        "deployments.apply_change",
        "deployments.advance_rollout",
        "deployments.reconcile_deployment",
    }

    broker.flush()

    assert world.cluster.weights("vision", "detector") == {
        "detector-r1-predictor": 90,
        "detector-r2-predictor": 10,
    }
    with start_worker(app, perform_ping_check=False, queues=[QUEUE]):
        beat_until(is_done(retirement.pk), world)
        beat_until(is_in(DeploymentState.STOPPED, others["stopping"]), world)
        beat_until(lambda: set(world.cluster.weights("vision", "detector").values()) == {50}, world)
    rollout.refresh_from_db()
    assert (rollout.step_index, rollout.phase) == (1, "running"), "one step, not two"
    assert AuditEvent.objects.filter(action="rollout.promoted").count() == 1
    assert world.cluster.names("InferenceService") == ["detector-r1", "detector-r2"]
    assert world.cluster.names("HTTPRoute") == ["detector"]
    deleted = Counter(call for call in world.cluster.writes if call[0] == "delete")
    for name in ("stopping", "retiring"):
        assert deleted["delete", "InferenceService", f"{name}-r1"] == 1
        assert deleted["delete", "HTTPRoute", name] == 1
