"""KEDA itself with the ScaledJob of a job that drains a queue of SQS: workers from zero, also for messages in flight."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

import boto3

from deployments.batch.domain import job, observation, queues, scaled_job
from deployments.batch.domain.settings import BatchSettings
from fleet.kube.services import objects
from tests.cluster.keda.fixtures import Scaled
from tests.cluster.test_keda_jobs import NAME, jobs_of, read
from tests.cluster.waiting import wait_until
from tests.contract.conftest import served

_ACCOUNT = "123456789012"


def test_messages_of_sqs_start_workers_and_those_in_flight_do_too(
    scaled: Scaled, sqs_server: str, journey: Callable[[str], None]
) -> None:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    sqs = boto3.client("sqs", endpoint_url=sqs_server, region_name="us-east-1", **keys)
    name = f"requests-{secrets.token_hex(4)}"
    sqs.create_queue(QueueName=name)
    url = f"{sqs_server}/{_ACCOUNT}/{name}"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "queue-keys", "namespace": scaled.context.namespace},
        "stringData": {"AWS_ACCESS_KEY_ID": "team", "AWS_SECRET_ACCESS_KEY": "not-a-secret"},
    }
    scaled.admin.apply([secret])
    settings = BatchSettings(
        instance_type="g5.xlarge", workers=3, secret="queue-keys", messages_per_worker=4
    )
    queue = queues.read(url, "s3://b/batch/vision/out/", settings)
    version = replace(served("triton"), spec=job.spec_of(settings))
    # One that a dead worker had received.
    sqs.send_message(QueueUrl=url, MessageBody="{}")
    (taken,) = sqs.receive_message(QueueUrl=url, VisibilityTimeout=3600)["Messages"]
    manifests = scaled_job.objects_of(
        scaled.context, version, settings, queue, name=NAME, columns=None, until=1.0
    )
    manifests[-1]["spec"]["pollingInterval"] = 1
    links = job.links(scaled.context, name=NAME, urls={0: "https://s3/list"})
    objects.apply(cluster_id=scaled.cluster_id, manifests=[links, *manifests])
    wait_until(lambda: len(jobs_of(scaled)) == 1, scaled.keda_logs)

    for _ in range(7):
        sqs.send_message(QueueUrl=url, MessageBody="{}")
    wait_until(lambda: len(jobs_of(scaled)) == 2, scaled.keda_logs)
    for _ in range(20):
        sqs.send_message(QueueUrl=url, MessageBody="{}")
    wait_until(lambda: len(jobs_of(scaled)) == 3, scaled.keda_logs)

    sqs.delete_message(QueueUrl=url, ReceiptHandle=taken["ReceiptHandle"])
    sqs.purge_queue(QueueUrl=url)
    wait_until(lambda: observation.observe_queue(read(scaled), []).is_empty, scaled.keda_logs)

    objects.delete(
        cluster_id=scaled.cluster_id,
        api_version=scaled_job.API_VERSION,
        kind=scaled_job.KIND,
        namespace=scaled.context.namespace,
        name=NAME,
    )
    wait_until(lambda: jobs_of(scaled) == [], scaled.keda_logs)
    journey(
        "KEDA: 1 message of SQS in flight made 1 worker, 8 made 2, 28 the most of 3, none no more"
    )
