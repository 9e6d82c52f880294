"""Gauges of queues, rows, clusters and seals, from a real database and broker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
import time_machine
from django.conf import settings as django_settings
from django.core.cache import cache
from django.db import DatabaseError
from django.test import Client

from deployments.models import BatchJob, Deployment, ModelVersion, ServiceTarget
from fleet.models import Cluster, PoolOfficeHours, SealedHour
from portal import celery_config
from portal.audit import sealing
from portal.core import clock, counters, heartbeats
from portal.monitoring.exposition import row_gauges
from tests.deployments.targets.traffic import set_target
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.portal.monitoring.exposition.scrape import get, scrape, value

__all__ = ["cluster_calls", "moving_clock", "world"]

_NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
_NAMES = Path(__file__).parents[1] / "expositions" / "portal.txt"


@pytest.fixture(autouse=True)
def now() -> Iterator[None]:
    cache.clear()
    with time_machine.travel(_NOW, tick=False):
        yield


def _cluster(name: str, **fields: Any) -> Cluster:
    return Cluster.objects.create(
        name=name, kind="local", gateway_url="http://x", created_at=_NOW, **fields
    )


def test_queues_say_what_waits_and_when_they_were_last_heard(offered: Any) -> None:
    heartbeats.beat("delivery")
    with redis.Redis.from_url(django_settings.SLIPWAY_REDIS_URL) as client:
        client.delete(*celery_config.QUEUES)
        client.lpush("artifacts", "one", "two")
        samples = scrape()
        client.delete("artifacts")

    heard = {
        queue: value(samples, "slipway_queue_heartbeat_timestamp_seconds", queue=queue)
        for queue in celery_config.QUEUES
    }
    waiting = {
        queue: value(samples, "slipway_queue_messages", queue=queue)
        for queue in celery_config.QUEUES
    }
    assert heard == {
        "artifacts": 0,
        "delivery": _NOW.timestamp(),
        "notifications": 0,
        "telemetry": 0,
    }
    assert waiting == {"artifacts": 2, "delivery": 0, "notifications": 0, "telemetry": 0}


def test_lag_is_that_of_the_oldest_row_that_nobody_holds(offered: Any) -> None:
    late, later = _NOW - timedelta(seconds=90), _NOW - timedelta(seconds=400)
    _cluster("late", next_check_at=late)
    _cluster("due", next_check_at=_NOW)
    _cluster("held", next_check_at=later, lease_until=_NOW + timedelta(seconds=1))
    _cluster("next", next_check_at=_NOW + timedelta(seconds=1))
    _cluster("never", next_check_at=None)

    samples = scrape()

    assert value(samples, "slipway_reconcile_due", kind="cluster") == 2
    assert value(samples, "slipway_reconcile_lag_seconds", kind="cluster") == 90
    assert value(samples, "slipway_reconcile_due", kind="rollout") == 0
    assert value(samples, "slipway_reconcile_lag_seconds", kind="rollout") == 0


def test_a_lease_that_ended_is_due_again(offered: Any) -> None:
    at = _NOW - timedelta(seconds=5)
    _cluster("dead", next_check_at=at, lease_until=at, lease_token="of a dead worker")

    assert value(scrape(), "slipway_reconcile_lag_seconds", kind="cluster") == 5


def test_rows_that_no_sweep_takes_are_not_late(offered: Any, world: World) -> None:
    set_target(world, world.serving())
    assert value(scrape(), "slipway_reconcile_due", kind="target") == 1

    Deployment.objects.update(is_retired=True)

    assert ServiceTarget.objects.exists()
    assert value(scrape(), "slipway_reconcile_due", kind="target") == 0


def test_clusters_and_their_errors(offered: Any) -> None:
    _cluster("prod", is_reachable=True, last_seen_at=_NOW - timedelta(seconds=7))
    _cluster("lab", is_reachable=False, last_seen_at=None)
    for name, error in [("prod", "throttled"), ("prod", "throttled"), ("removed", "refused")]:
        counters.increase(counters.CLUSTER_ERRORS, name, error)

    samples = scrape()

    observed = "slipway_cluster_observed_timestamp_seconds"
    assert value(samples, "slipway_cluster_reachable", cluster="prod") == 1
    assert value(samples, "slipway_cluster_reachable", cluster="lab") == 0
    assert value(samples, observed, cluster="prod") == _NOW.timestamp() - 7
    assert value(samples, observed, cluster="lab") == 0
    failed = {labels: n for (name, labels), n in samples.items() if "cluster_errors" in name}
    assert failed == {frozenset({("cluster", "prod"), ("error", "throttled")}): 2}


def test_uploads_in_progress(offered: Any, world: World) -> None:
    ModelVersion.objects.filter(pk=world.version2.pk).update(state="uploading")

    samples = scrape()

    assert value(samples, "slipway_uploads_in_progress", state="uploading") == 1
    assert value(samples, "slipway_uploads_in_progress", state="verifying") == 0


def test_seals(offered: Any, world: World) -> None:
    cluster = Cluster.objects.get(pk=world.cluster_id)
    for hour in (8, 9):
        SealedHour.objects.create(cluster=cluster, hour=_NOW.replace(hour=hour), sealed_at=_NOW)
    world.serving()
    sealing.seal()
    assert value(scrape(), "slipway_audit_unsealed_timestamp_seconds") is None
    world.serving(name="another")

    samples = scrape()

    ledger = "slipway_ledger_sealed_timestamp_seconds"
    assert value(samples, ledger, cluster=cluster.name) == _NOW.replace(hour=10).timestamp()
    assert value(samples, "slipway_audit_sealed_timestamp_seconds") == _NOW.timestamp()
    assert value(samples, "slipway_audit_unsealed_timestamp_seconds") == _NOW.timestamp()


def test_without_a_broker_the_rest_is_there(offered: Any) -> None:
    offered.SLIPWAY_REDIS_URL = "redis://127.0.0.1:1/0"

    samples = scrape()

    assert value(samples, "slipway_collector_success", collector="queues") == 0
    assert value(samples, "slipway_collector_success", collector="rows") == 1
    assert value(samples, "slipway_queue_messages", queue="delivery") is None
    assert value(samples, "slipway_reconcile_due", kind="rollout") == 0


def test_half_of_a_part_is_not_shown(offered: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise DatabaseError

    monkeypatch.setattr(row_gauges, "_uploads", fail)

    samples = scrape()

    assert value(samples, "slipway_collector_success", collector="rows") == 0
    assert value(samples, "slipway_reconcile_due", kind="rollout") is None
    assert value(samples, "slipway_collector_success", collector="clusters") == 1


def test_the_names_that_rules_and_dashboards_are_held_against(offered: Any, world: World) -> None:
    """expositions/portal.txt is an answer of the portal: `curl`ed with everything in it."""
    counters.increase(counters.CLUSTER_ERRORS, Cluster.objects.get().name, "refused")
    SealedHour.objects.create(cluster=Cluster.objects.get(), hour=_NOW, sealed_at=_NOW)
    world.serving()
    sealing.seal()
    world.serving(name="another")
    Client().get("/sign-in")

    pattern = re.compile(r"^([A-Za-z_:][\w:]*)[{ ]", re.MULTILINE)
    published = set(pattern.findall(get().content.decode()))
    # Of one process only.
    published = {name for name in published if not name.endswith("_created")}

    assert set(pattern.findall(_NAMES.read_text())) == published


def test_jobs_actions_and_office_hours_are_counted_and_the_oldest_request_has_its_age(
    world: World, offered: Any
) -> None:
    at = clock.now()
    version, member = world.version1, world.member
    for name, state, hours in (("a", "submitted", 5), ("b", "submitted", 2), ("c", "running", 90)):
        BatchJob.objects.create(
            team=world.team,
            name=name,
            version=version,
            cluster_id=world.cluster_id,
            requester=member,
            created_at=at - timedelta(hours=hours),
            state=state,
            output=f"s3://b/batch/vision/{name}/",
        )
    fields: dict[str, Any] = {"cluster_id": world.cluster_id, "hours": {}, "created_at": at}
    for target, is_open, problem in (("p", True, ""), ("q", False, ""), ("r", False, "refused")):
        PoolOfficeHours.objects.create(
            target_kind="node-pool", target=target, is_open=is_open, problem=problem, **fields
        )

    samples = scrape()

    jobs = {s: value(samples, "slipway_batch_jobs", state=s) for s in ("submitted", "running")}
    assert jobs == {"submitted": 2, "running": 1}
    hours_kept = {
        s: value(samples, "slipway_scheduled_pools", state=s) for s in ("open", "closed", "problem")
    }
    assert hours_kept == {"open": 1, "closed": 1, "problem": 1}
    assert value(samples, "slipway_fleet_actions", state="submitted") == 0
    waiting = {
        kind: value(samples, "slipway_approval_waiting_seconds", kind=kind)
        for kind in ("batch-job", "change-request", "fleet-action")
    }
    assert waiting == {"batch-job": 5 * 3600, "change-request": 0, "fleet-action": 0}
