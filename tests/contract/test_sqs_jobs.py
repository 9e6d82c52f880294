"""A job that drains a queue of SQS on the local cluster: SQS's API by HTTP, a real Triton, workers from zero and back."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from deployments.batch.domain.states import FINAL
from deployments.batch.services import requests
from deployments.batch.services.requests import BatchDraft
from deployments.models import BatchJob
from fleet.clusters.services import capabilities
from fleet.kube.services import objects
from tests.contract.test_batch import SELDOM, Scene, pytestmark, row, running, scene
from tests.fixtures.aws_server import serving_aws
from tests.waiting import wait_for

__all__ = ["pytestmark", "running", "scene"]
ACCOUNT = "123456789012"
KEYS = {"AWS_ACCESS_KEY_ID": "team", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}


@pytest.fixture
def sqs(settings: Any) -> Iterator[tuple[str, Any]]:
    settings.SLIPWAY_BATCH_QUEUES = ["127.0.0.1:*"]
    with serving_aws("sqs") as address:
        client = boto3.client(
            "sqs",
            endpoint_url=address,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        name = f"requests-{secrets.token_hex(4)}"
        for queue in (name, f"{name}-dead"):
            client.create_queue(QueueName=queue)
        yield f"{address}/{ACCOUNT}/{name}", client


def start(scene: Scene, url: str) -> BatchJob:
    pods = {"instance_type": "g5.xlarge", "cpu": "1", "memory": "2Gi", "hours": 1, "requests": 4}
    draft = BatchDraft(
        name="drain",
        model="adder",
        version=scene.version.number,
        cluster="local",
        input=url,
        output=f"s3://{scene.bucket}/batch/vision/out/drain/",
        pods={**pods, "capacity": "any", "idle_seconds": 5, "secret": "queue-keys"},
    )
    return requests.request(actor=scene.member, team_slug="vision", draft=draft)


def depth(client: Any, url: str) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    return _sum_of(client, url, names)


def held(client: Any, url: str) -> int:
    return _sum_of(client, url, ["ApproximateNumberOfMessagesNotVisible"])


def _sum_of(client: Any, url: str, names: list[str]) -> int:
    found = client.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(int(found[name]) for name in names)


def test_it_starts_from_zero_and_a_killed_worker_leaves_each_message_with_one_answer(
    scene: Scene, sqs: tuple[str, Any]
) -> None:
    url, client = sqs
    capabilities.probe(cluster_id=scene.cluster.pk)
    job = start(scene, url)
    scene.until(job, lambda: "KEDA cannot read the queue" in job.detail)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "queue-keys", "namespace": "vision"},
        "stringData": KEYS,
    }
    objects.apply(cluster_id=scene.cluster.pk, manifests=[secret])
    scene.until(
        job,
        lambda: job.detail == "no messages are waiting, so no workers run",
        pause_seconds=SELDOM,
    )
    assert scene.pods() == []

    expected: dict[str, list[float]] = {}
    for first in range(0, 600, 10):
        entries = [{"Id": str(n), "MessageBody": row(float(first + n))} for n in range(10)]
        sent = client.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]
        expected |= {item["MessageId"]: [first + int(item["Id"]) + 2.0] for item in sent}
    client.send_message(QueueUrl=url, MessageBody="{no")
    scene.until(job, scene.workers)
    first_worker, *_ = scene.workers()
    # Long before it reports: what dies between the last acknowledgement and its report is counted by the next one.
    wait_for("a worker holds messages", lambda: held(client, url))
    os.kill(first_worker.pid, signal.SIGKILL)
    # What it held is visible again after a minute.
    scene.until(job, lambda: depth(client, url) == 0, pause_seconds=SELDOM)
    scene.until(job, lambda: "no messages are waiting" in job.detail, pause_seconds=SELDOM)

    rows = scene.rows_of(job)
    answers = {item["message"]: item["outputs"][0]["data"] for item in rows}
    assert len(rows) == len(answers) == 600, "each message has one answer"
    assert answers == expected
    dead = client.receive_message(
        QueueUrl=f"{url}-dead", MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )["Messages"]
    reasons = [item["MessageAttributes"]["slipway.reason"]["StringValue"] for item in dead]
    assert [reason.partition(":")[0] for reason in reasons] == ["the request is not JSON"]
    assert (job.done_rows, job.failed_rows) == (601, 1)

    requests.cancel(actor=scene.member, job_id=job.pk)
    scene.until(job, lambda: job.state in FINAL)
    wait_for("the pods are gone", lambda: not scene.pods())
