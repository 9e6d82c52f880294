"""What beat loads and sends, and how long a worker keeps its connection to the database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis
from celery import signals
from celery.fixups.django import (  # type: ignore[attr-defined]  # the stubs lack it
    DjangoWorkerFixup,
)
from django.db import connection

from portal.celery import app
from portal.celery_config import beat_schedule

ROOT = Path(__file__).resolve().parents[3]
_SEND_ALL = """
import json, sys
from celery.beat import Scheduler
from portal.beat import app
scheduler = Scheduler(app=app)
for entry in scheduler.schedule.values():
    scheduler.apply_async(entry, advance=False)
said = {"sent": len(scheduler.schedule), "modules": list(sys.modules)}
print(json.dumps(said))
"""


def test_beat_sends_each_sweep_to_its_queue_without_loading_an_app() -> None:
    broker = f"{os.environ['SLIPWAY_REDIS_URL'].rpartition('/')[0]}/15"
    environment = {**os.environ, "SLIPWAY_REDIS_URL": broker}

    with redis.Redis.from_url(broker) as server:
        server.flushdb()
        done = subprocess.run(
            [sys.executable, "-c", _SEND_ALL],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        sent = {
            (message["headers"]["task"], queue)
            for queue in ("delivery", "telemetry", "artifacts", "notifications")
            for message in map(json.loads, server.lrange(queue, 0, -1))
        }
        server.flushdb()

    said = json.loads(done.stdout)
    routed = {
        (entry["task"], app.amqp.router.route(entry["options"], entry["task"])["queue"].name)
        for entry in beat_schedule.values()
    }
    assert sent == routed
    assert said["sent"] == len(beat_schedule)
    apps = {"deployments", "fleet", "portal.accounts", "django.db.models", "portal.settings"}
    assert apps & set(said["modules"]) == set()


@pytest.mark.django_db(transaction=True)
def test_a_worker_keeps_its_connection_until_it_is_old() -> None:
    task = app.tasks["fleet.meter"]
    fixup = DjangoWorkerFixup(app)
    connection.ensure_connection()
    kept = connection.connection

    connection.close_at = time.monotonic() + 60
    for _ in range(3):
        signals.task_prerun.send(sender=task)
        fixup.on_task_prerun(sender=task)
        signals.task_postrun.send(sender=task)
        fixup.on_task_postrun(sender=task)
    assert connection.connection is kept

    connection.close_at = time.monotonic() - 1
    signals.task_prerun.send(sender=task)
    assert connection.connection is None
