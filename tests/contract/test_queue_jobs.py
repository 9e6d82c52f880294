"""A job that drains a stream on the local cluster: a real Valkey and Triton, workers from zero and back to zero."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from deployments.batch.domain.states import FINAL
from deployments.batch.services import requests
from deployments.batch.services.requests import BatchDraft
from deployments.models import BatchJob
from fleet.clusters.services import capabilities
from fleet.models import GpuLease
from fleet.observation.services import sweep as observation
from tests.contract.test_batch import SELDOM, Scene, pytestmark, row, running, scene
from tests.fixtures.valkey_server import serving_valkey
from tests.waiting import wait_for

__all__ = ["pytestmark", "running", "scene"]
STREAM = "requests"


@pytest.fixture
def stream(settings: Any) -> Iterator[tuple[int, redis.Redis]]:
    settings.SLIPWAY_BATCH_QUEUES = ["127.0.0.1:*"]
    with serving_valkey() as port, redis.Redis(port=port) as client:
        yield port, client


def start(scene: Scene, port: int, **pods: Any) -> BatchJob:
    server = f"redis://127.0.0.1:{port}"
    draft = BatchDraft(
        name="drain",
        model="adder",
        version=scene.version.number,
        cluster="local",
        input=f"{server}/{STREAM}",
        output=f"{server}/answers",
        pods={
            "instance_type": "g5.xlarge",
            "cpu": "1",
            "memory": "2Gi",
            "hours": 1,
            "capacity": "any",
            "idle_seconds": 5,
            "requests": 4,
            **pods,
        },
    )
    return requests.request(actor=scene.member, team_slug="vision", draft=draft)


def entries_of(client: redis.Redis, stream: str) -> list[Any]:
    return [entry for _, entry in client.xrange(stream) or ()]


def test_it_starts_from_zero_survives_a_killed_worker_and_stops_at_zero(
    scene: Scene, stream: tuple[int, redis.Redis]
) -> None:
    port, client = stream
    capabilities.probe(cluster_id=scene.cluster.pk)
    scene.cluster.refresh_from_db()
    features = scene.cluster.capabilities["features"]
    assert features["scaled-jobs"]["is_there"] is True
    assert features["keda"]["is_there"] is False, "deployments do not scale by KEDA here"
    job = start(scene, port)
    scene.until(job, lambda: job.detail == "no messages are waiting, so no workers run")
    assert scene.pods() == []

    ids = [client.xadd(STREAM, {"request": row(float(n))}).decode() for n in range(3000)]
    bad = client.xadd(STREAM, {"request": "{no"}).decode()
    scene.until(job, lambda: client.xlen("answers") > 100)
    assert client.xlen("answers") < 3000
    first, *_ = scene.workers()
    os.kill(first.pid, signal.SIGKILL)
    # Its Triton goes with its pod. What it held is delivered again once it was idle for a minute.
    scene.until(job, lambda: client.xlen("answers") == 3000, pause_seconds=SELDOM)
    scene.until(job, lambda: "no messages are waiting" in job.detail, pause_seconds=SELDOM)

    rows = [json.loads(entry[b"answer"]) for entry in entries_of(client, "answers")]
    answers = {item["message"]: item["outputs"][0]["data"] for item in rows}
    assert len(rows) == len(answers) == 3000, "each message has one answer"
    assert answers == {name: [n + 2.0] for n, name in enumerate(ids)}
    (dead,) = entries_of(client, f"{STREAM}:dead")
    assert (dead[b"slipway.id"].decode(), job.failed_rows) == (bad, 1)
    assert client.xpending(STREAM, "slipway")["pending"] == 0
    assert job.drained is not None
    assert job.drained["waiting"] == 0

    requests.cancel(actor=scene.member, job_id=job.pk)
    scene.until(job, lambda: job.state in FINAL)
    assert job.state == "canceled"
    wait_for("the pods are gone", lambda: not scene.pods())
    observation.observe(cluster_id=scene.cluster.pk)
    leases = GpuLease.objects.filter(team_slug="vision")
    assert set(leases.values_list("workload__labels__deployment", flat=True)) == {"batch/drain"}
    assert not leases.filter(ended_at=None).exists()
