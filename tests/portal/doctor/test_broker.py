"""Valkey, workers, beat and the watcher on a real broker: each missing or wrong has its line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import time_machine
from celery.contrib.testing.worker import start_worker

from fleet.models import Cluster, ClusterKind
from portal import celery_config
from portal.celery import app
from portal.core import clock, heartbeats
from portal.doctor.checks.broker import connect
from portal.doctor.lines import Line, Status
from tests.portal.doctor.conftest import Doctor, failing
from tests.waiting import wait_for


@contextmanager
def configured(**values: str) -> Iterator[None]:
    """Settings of the shared test server, put back afterwards."""
    with connect() as client:
        before = {name: client.config_get(name)[name] for name in values}
        try:
            for name, value in values.items():
                client.config_set(name, value)
            yield
        finally:
            for name, value in before.items():
                client.config_set(name, value)


def with_workers(doctor: Doctor) -> dict[str, Line]:
    """The lines of a look in which the worker answered in time; a loaded machine may need a second."""

    def read() -> dict[str, Line] | None:
        lines = doctor("workers")
        return None if lines["Queue telemetry"].detail.startswith("no worker") else lines

    return wait_for("an answer of the worker", read)


def test_a_broker_that_is_well(doctor: Doctor) -> None:
    lines = doctor("broker")

    assert not failing(lines)
    assert lines["Valkey"].detail.startswith("Valkey ")
    assert lines["Eviction"].detail == "noeviction"
    assert lines["Persistence"].status is Status.NOTE


def test_a_broker_that_drops_messages_or_is_full(doctor: Doctor) -> None:
    with configured(**{"maxmemory-policy": "allkeys-lru"}):
        line = doctor("broker")["Eviction"]
    assert line.status is Status.FAILED
    assert line.detail.startswith("allkeys-lru: ")

    with configured(maxmemory="1gb"):
        assert "Memory" not in doctor("broker")


def test_a_broker_that_does_not_answer(doctor: Doctor, settings: Any) -> None:
    settings.SLIPWAY_REDIS_URL = "redis://:very-secret-word@127.0.0.1:1/0"

    line = doctor("broker")["Valkey"]

    assert line.status is Status.FAILED
    assert "127.0.0.1:1" in line.detail
    assert "SLIPWAY_REDIS_URL" in line.fix


def test_a_remote_broker_without_tls_and_password(doctor: Doctor, settings: Any) -> None:
    settings.SLIPWAY_REDIS_URL = "redis://valkey.invalid:6379/0"

    lines = doctor("broker")

    assert failing(lines) == {"Valkey", "Encryption", "Password"}
    assert "rediss://" in lines["Encryption"].fix


def test_nobody_works(doctor: Doctor) -> None:
    with connect() as client:
        client.flushdb()
        client.rpush("delivery", "{}", "{}")
        lines = doctor("workers")
        client.delete("delivery")

    assert failing(lines) == {f"Queue {queue}" for queue in celery_config.QUEUES}
    assert lines["Queue delivery"].detail == "no worker; 2 messages wait"
    assert (
        lines["Queue delivery"].fix == "Start `celery -A portal.celery worker --queues delivery`."
    )


def test_a_heartbeat_goes_from_beats_entry_through_the_worker_of_its_queue(
    transactional_db: None, doctor: Doctor
) -> None:
    entry = celery_config.beat_schedule["heartbeat of telemetry"]
    with connect() as client:
        client.flushdb()
    with start_worker(app, perform_ping_check=False, queues=celery_config.QUEUES):
        lines = with_workers(doctor)
        assert failing(lines) == {"Beat", *(f"Queue {queue}" for queue in celery_config.QUEUES)}
        assert lines["Queue telemetry"].detail == (
            "no heartbeat came through yet; 1 worker, 0 messages wait"
        )

        app.send_task(entry["task"], args=entry["args"], **entry["options"])
        wait_for("a heartbeat", lambda: heartbeats.last("telemetry"))

        lines = with_workers(doctor)
        assert lines["Beat"].status is Status.OK
        assert lines["Queue telemetry"].detail == "1 worker, 0 messages wait"
        with time_machine.travel(clock.now() + timedelta(seconds=100)):
            late = with_workers(doctor)["Queue telemetry"]
    assert late.status is Status.FAILED
    assert "the last heartbeat came 1" in late.detail


def test_a_watcher_that_stopped(doctor: Doctor) -> None:
    cluster = Cluster.objects.create(
        name="prod", kind=ClusterKind.LOCAL, gateway_url="http://x", created_at=clock.now()
    )
    assert doctor("workers")["Watcher of prod"].detail.startswith("nothing was reported yet")

    Cluster.objects.filter(pk=cluster.pk).update(watch_seen_at=clock.now())
    assert doctor("workers")["Watcher of prod"].status is Status.OK

    with time_machine.travel(clock.now() + timedelta(minutes=3)):
        assert doctor("workers")["Watcher of prod"].status is Status.FAILED
