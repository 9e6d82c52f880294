"""KEDA itself with the ScaledJob of a job that drains a stream: workers from zero, also for what a dead one had taken."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import redis

from deployments.batch.domain import job, observation, queues, scaled_job
from deployments.batch.domain.settings import BatchSettings
from fleet.kube.services import objects
from tests.cluster.keda.fixtures import Scaled
from tests.cluster.waiting import wait_until
from tests.contract.conftest import served
from tests.fixtures.valkey_server import serving_valkey

NAME, STREAM, GROUP = "batch-7-1", "requests", "slipway"


def jobs_of(scaled: Scaled) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scaled.admin.get(
        "jobs", f"--namespace={scaled.context.namespace}"
    )["items"]
    return found


def read(scaled: Scaled) -> dict[str, Any]:
    return scaled.admin.get("scaledjob", NAME, f"--namespace={scaled.context.namespace}")


def test_messages_of_a_stream_start_workers_and_pending_ones_do_too(
    scaled: Scaled, journey: Callable[[str], None]
) -> None:
    password = secrets.token_hex(8)
    with serving_valkey() as port:
        with redis.Redis(port=port) as opened:
            opened.config_set("requirepass", password)
        with redis.Redis(port=port, password=password) as client:
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "queue-auth", "namespace": scaled.context.namespace},
                "stringData": {"password": password},
            }
            scaled.admin.apply([secret])
            settings = BatchSettings(
                instance_type="g5.xlarge", workers=3, secret="queue-auth", messages_per_worker=4
            )
            server = f"redis://127.0.0.1:{port}"
            queue = queues.read(f"{server}/{STREAM}", f"{server}/answers", settings)
            version = replace(served("triton"), spec=job.spec_of(settings))
            # A group that read everything, and acknowledged nothing of the last one.
            client.xadd(STREAM, {"request": "{}"})
            client.xgroup_create(STREAM, GROUP, id="0")
            (_, ((first, _),)) = client.xreadgroup(GROUP, "dead", {STREAM: ">"}, count=1)[0]
            manifests = scaled_job.objects_of(
                scaled.context, version, settings, queue, name=NAME, columns=None, until=1.0
            )
            manifests[-1]["spec"]["pollingInterval"] = 1
            # KEDA reads what the pods' environment refers to.
            links = job.links(scaled.context, name=NAME, urls={0: "https://s3/list"})
            objects.apply(cluster_id=scaled.cluster_id, manifests=[links, *manifests])
            wait_until(lambda: len(jobs_of(scaled)) == 1, scaled.keda_logs)

            for _ in range(7):
                client.xadd(STREAM, {"request": "{}"})
            wait_until(lambda: len(jobs_of(scaled)) == 2, scaled.keda_logs)
            for _ in range(100):
                client.xadd(STREAM, {"request": "{}"})
            wait_until(lambda: len(jobs_of(scaled)) == 3, scaled.keda_logs)

            labels = jobs_of(scaled)[0]["spec"]["template"]["metadata"]["labels"]
            assert labels["slipway.dev/batch"] == NAME
            client.xack(STREAM, GROUP, first)
            ids = [number for number, _ in client.xreadgroup(GROUP, "w", {STREAM: ">"})[0][1]]
            client.xack(STREAM, GROUP, *ids)
            wait_until(
                lambda: observation.observe_queue(read(scaled), []).is_empty, scaled.keda_logs
            )

        objects.delete(
            cluster_id=scaled.cluster_id,
            api_version=scaled_job.API_VERSION,
            kind=scaled_job.KIND,
            namespace=scaled.context.namespace,
            name=NAME,
        )
        wait_until(lambda: jobs_of(scaled) == [], scaled.keda_logs)
    journey(
        "KEDA: 1 pending message made 1 worker, 7 unread ones 2, 107 the most of 3, none no more"
    )
