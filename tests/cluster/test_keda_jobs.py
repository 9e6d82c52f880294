"""KEDA itself with the ScaledJob of a job that drains a stream: workers from zero, also for what a dead one had taken."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import redis

from deployments.batch.domain import queues
from deployments.batch.domain.settings import BatchSettings
from tests.cluster.keda import draining
from tests.cluster.keda.fixtures import Scaled
from tests.fixtures.valkey_server import serving_valkey

STREAM, GROUP = "requests", "slipway"


def test_messages_of_a_stream_start_workers_and_pending_ones_do_too(
    scaled: Scaled, journey: Callable[[str], None]
) -> None:
    password = secrets.token_hex(8)
    draining.make_secret(scaled, "queue-auth", {"password": password})
    settings = BatchSettings(
        instance_type="g5.xlarge", workers=3, secret="queue-auth", messages_per_worker=4
    )
    with serving_valkey() as port:
        with redis.Redis(port=port) as opened:
            opened.config_set("requirepass", password)
        with redis.Redis(port=port, password=password) as client:
            server = f"redis://127.0.0.1:{port}"
            queue = queues.read(f"{server}/{STREAM}", f"{server}/answers", settings)
            # A group that read everything, and acknowledged nothing of the last one.
            client.xadd(STREAM, {"request": "{}"})
            client.xgroup_create(STREAM, GROUP, id="0")
            (_, ((first, _),)) = client.xreadgroup(GROUP, "dead", {STREAM: ">"}, count=1)[0]
            draining.start(scaled, settings, queue)
            draining.wait_for_workers(scaled, 1)

            for _ in range(7):
                client.xadd(STREAM, {"request": "{}"})
            draining.wait_for_workers(scaled, 2)
            for _ in range(100):
                client.xadd(STREAM, {"request": "{}"})
            draining.wait_for_workers(scaled, 3)

            labels = draining.workers(scaled)[0]["spec"]["template"]["metadata"]["labels"]
            assert labels["slipway.dev/batch"] == draining.NAME
            client.xack(STREAM, GROUP, first)
            ids = [number for number, _ in client.xreadgroup(GROUP, "w", {STREAM: ">"})[0][1]]
            client.xack(STREAM, GROUP, *ids)
            draining.wait_until_empty(scaled)
        draining.end(scaled)
    journey(
        "KEDA: 1 pending message made 1 worker, 7 unread ones 2, 107 the most of 3, none no more"
    )
