"""KEDA itself with the ScaledJob of a job that drains a queue of SQS: workers from zero, also for messages in flight."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import boto3

from deployments.batch.domain import queues
from deployments.batch.domain.settings import BatchSettings
from tests.cluster.keda import draining
from tests.cluster.keda.fixtures import Scaled

_ACCOUNT = "123456789012"


def test_messages_of_sqs_start_workers_and_those_in_flight_do_too(
    scaled: Scaled, sqs_server: str, journey: Callable[[str], None]
) -> None:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    sqs = boto3.client("sqs", endpoint_url=sqs_server, region_name="us-east-1", **keys)
    name = f"requests-{secrets.token_hex(4)}"
    sqs.create_queue(QueueName=name)
    url = f"{sqs_server}/{_ACCOUNT}/{name}"
    secret = {"AWS_ACCESS_KEY_ID": "team", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}
    draining.make_secret(scaled, "queue-keys", secret)
    settings = BatchSettings(
        instance_type="g5.xlarge", workers=3, secret="queue-keys", messages_per_worker=4
    )
    queue = queues.read(url, "s3://b/batch/vision/out/", settings)
    # One that a dead worker had received.
    sqs.send_message(QueueUrl=url, MessageBody="{}")
    (taken,) = sqs.receive_message(QueueUrl=url, VisibilityTimeout=3600)["Messages"]
    draining.start(scaled, settings, queue)
    draining.wait_for_workers(scaled, 1)

    for _ in range(7):
        sqs.send_message(QueueUrl=url, MessageBody="{}")
    draining.wait_for_workers(scaled, 2)
    for _ in range(20):
        sqs.send_message(QueueUrl=url, MessageBody="{}")
    draining.wait_for_workers(scaled, 3)

    sqs.delete_message(QueueUrl=url, ReceiptHandle=taken["ReceiptHandle"])
    sqs.purge_queue(QueueUrl=url)
    draining.wait_until_empty(scaled)
    draining.end(scaled)
    journey(
        "KEDA: 1 message of SQS in flight made 1 worker, 8 made 2, 28 the most of 3, none no more"
    )
