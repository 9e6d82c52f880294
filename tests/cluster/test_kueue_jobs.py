"""Kueue itself with batch jobs: a Job over files is admitted as a whole, workers of a queue of messages one by one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.test import Client
from rest_framework.test import APIClient

from deployments.batch.domain import queues
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.services import advance, requests
from deployments.batch.services.requests import BatchDraft
from deployments.manifests.domain.network import BATCH_LABEL
from deployments.models import BatchJob
from deployments.serving.domain import queue_state
from deployments.serving.services import queue_lists
from fleet.clusters.selectors import clusters
from fleet.clusters.services import capabilities
from fleet.models import Cluster
from fleet.observation.services import sweep
from portal.core import clock
from tests.cluster.agents import Agents, agents, served_cluster
from tests.cluster.keda import draining
from tests.cluster.keda.fixtures import Scaled
from tests.cluster.kubectl import Kubectl
from tests.cluster.kueue.fixtures import QUEUE, Quota, kueue, quota
from tests.cluster.scene import Scene
from tests.cluster.waiting import wait_until
from tests.contract.prices import price_all_nodes
from tests.fixtures.valkey_server import serving_valkey
from tests.page import page
from tests.waiting import PATIENCE_SECONDS

__all__ = ["agents", "kueue", "quota", "served_cluster"]
STREAM = "requests"
ROWS = 12_000


def row(value: float) -> str:
    tensor = {"name": "x", "shape": [1], "datatype": "FP32", "data": [value]}
    return json.dumps({"inputs": [tensor]}) + "\n"


def until(job: BatchJob, done: Callable[[], bool], why: Callable[[], str]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        BatchJob.objects.exclude(next_check_at=None).update(next_check_at=clock.now())
        advance.sweep()
        job.refresh_from_db()
        if done():
            return
        time.sleep(0.2)  # bounded polling of real processes
    raise AssertionError((job.state, job.state_reason, job.detail, why()))


def workers(scene: Scene) -> list[str]:
    """Names of its pods."""
    pods = scene.pods()
    return [one["metadata"]["name"] for one in pods if BATCH_LABEL in one["metadata"]["labels"]]


@pytest.fixture
def priced(served_cluster: Cluster) -> Cluster:
    sweep.observe(cluster_id=served_cluster.pk)
    price_all_nodes()
    return served_cluster


def test_a_job_over_files_waits_runs_gives_way_and_goes_on(
    quota: Quota,
    priced: Cluster,
    agents: Agents,
    namespace: str,
    admin: Kubectl,
    client: Client,
    s3_store: Any,
    settings: Any,
    journey: Callable[[str], None],
) -> None:
    scene = Scene(priced, agents, namespace, admin, client)
    version = scene.upload("adder", 1)
    bucket = settings.SLIPWAY_S3_BUCKET
    area = f"batch/{namespace}"
    body = "".join(row(float(number)) for number in range(ROWS)).encode()
    s3_store.client.put_object(Bucket=bucket, Key=f"{area}/in/rows.jsonl", Body=body)
    for count, name in ((1, "first"), (2, "second")):
        quota.train(name)
        quota.wait_for_workloads(count)
    quota.wait_for_admission("first")
    draft = BatchDraft(
        name="scores",
        model="adder",
        version=version.number,
        cluster=priced.name,
        input=f"s3://{bucket}/{area}/in/rows.jsonl",
        output=f"s3://{bucket}/{area}/out/",
        pods={
            "instance_type": "g5.xlarge",
            "cpu": "1",
            "memory": "2Gi",
            "hours": 1,
            "capacity": "any",
            "queue": QUEUE,
            "requests": 1,
        },
    )
    job = requests.request(actor=scene.member, team_slug=namespace, draft=draft)

    # Kueue says why a moment after it has ordered it.
    waits = f"1 pod waits in queue {QUEUE}, position 2: "
    until(
        job,
        lambda: job.detail.startswith(waits) and "nvidia.com/gpu" in job.detail,
        quota.describe,
    )
    assert job.detail in page(client.get(f"/{namespace}/batch/scores")).text
    rest = APIClient()
    rest.force_authenticate(scene.member)
    assert rest.get(f"/api/v1/batch-jobs/{job.pk}").json()["detail"] == job.detail
    assert not workers(scene)

    quota.finish("second")
    until(job, lambda: "position 1" in job.detail, quota.describe)
    quota.finish("first")
    until(job, lambda: job.done_rows > 0, quota.describe)

    quota.train("urgent", priority=1000)
    quota.wait_for_admission("urgent")
    until(job, lambda: job.detail.startswith("evicted ("), quota.describe)
    assert "reempted" in job.detail
    assert job.state == "running"
    until(job, lambda: not workers(scene), quota.describe)
    assert 0 < job.done_rows < ROWS
    quota.finish("urgent")
    until(job, lambda: job.state == "succeeded", quota.describe)
    assert (job.done_rows, job.failed_rows) == (ROWS, 0)
    journey(
        "Kueue, batch job: second in its queue, suspended until quota was free, preempted half-way, all rows scored"
    )


def test_workers_of_a_queue_of_messages_are_admitted_one_by_one(
    quota: Quota, scaled: Scaled, journey: Callable[[str], None]
) -> None:
    capabilities.probe(cluster_id=scaled.cluster_id)
    known = clusters.get_cluster(scaled.cluster_id).capabilities.kueue
    settings = BatchSettings(
        instance_type="g5.xlarge", workers=3, messages_per_worker=1, queue=QUEUE
    )

    def state() -> queue_state.QueueState | None:
        namespace = scaled.context.namespace
        lists = queue_lists.read(scaled.cluster_id, known, namespace=namespace, queues=[QUEUE])
        return queue_state.read_job_queue(
            QUEUE, draining.workers(scaled), lists.workloads, lists.positions.get(QUEUE)
        )

    def made() -> int:
        return len(draining.workers(scaled))

    def wait_until_admitted(count: int) -> None:
        def is_admitted() -> bool:
            found = state()
            return found is not None and (found.waiting, found.position) == (made() - count, 1)

        wait_until(is_admitted, quota.describe)

    with serving_valkey() as port, redis.Redis(port=port) as client:
        server = f"redis://127.0.0.1:{port}"
        for _ in range(50):
            client.xadd(STREAM, {"request": "{}"})
        queue = queues.read(f"{server}/{STREAM}", f"{server}/answers", settings)
        draining.start(scaled, settings, queue)
        wait_until(lambda: made() >= 3, scaled.keda_logs)
        wait_until_admitted(1)
        wait_until(
            lambda: (found := state()) is not None and "nvidia.com/gpu" in found.why,
            quota.describe,
        )
        running = [one for one in draining.workers(scaled) if not one["spec"]["suspend"]]
        assert len(running) == 1
        # KEDA counts those that wait. Where it looks twice before it sees what it made, it makes one more.
        most = made()
        assert most in (3, 4)

        quota.set_gpus(2)
        wait_until_admitted(2)
        quota.set_gpus(most)
        wait_until(lambda: state() is None, quota.describe)
        assert made() == most
        draining.end(scaled)
    journey("Kueue and KEDA: of 3 workers for 50 messages 1, 2 and all were admitted as quota grew")
