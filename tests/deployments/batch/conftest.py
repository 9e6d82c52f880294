from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import redis

from deployments.batch.domain import queue_worker, worker_outbox, worker_program
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import S3Store
from tests.deployments.batch.bench import Bench
from tests.deployments.batch.queue_bench import STREAM, QueueBench
from tests.deployments.batch.sqs_bench import ACCOUNT, NAME, SqsBench
from tests.deployments.world import World
from tests.fixtures.aws_server import serving_aws
from tests.fixtures.valkey_server import serving_valkey


@pytest.fixture
def bench(world: World, s3_store: S3Store, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Bench:
    # A thread that would outlive the test.
    monkeypatch.setattr(worker_program.Worker, "keep_links_fresh", lambda _: None)
    return Bench(world, s3_store.client, settings.SLIPWAY_S3_BUCKET)


@pytest.fixture
def real_store(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """For uploads: the world keeps artifacts in memory."""
    monkeypatch.setattr(object_store, "store", object_store.s3_store)


@pytest.fixture(scope="session")
def valkey() -> Iterator[tuple[int, redis.Redis]]:
    with serving_valkey() as port, redis.Redis(port=port) as client:
        yield port, client


def in_one_thread(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_outbox.Outbox, "keep_fresh", lambda _: None)
    monkeypatch.setattr(queue_worker, "WAIT_MS", 1)
    monkeypatch.setattr(queue_worker, "pause", lambda _: None)
    settings.SLIPWAY_BATCH_QUEUES = ["127.0.0.1:*"]


@pytest.fixture(scope="session")
def sqs_server() -> Iterator[str]:
    with serving_aws("sqs") as address:
        yield address


@pytest.fixture
def sqs_bench(
    bench: Bench, sqs_server: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> SqsBench:
    in_one_thread(settings, monkeypatch)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    client = boto3.client("sqs", endpoint_url=sqs_server, region_name="us-east-1")
    urls = [f"{sqs_server}/{ACCOUNT}/{name}" for name in (NAME, f"{NAME}-dead")]
    for url in urls:
        name = url.rpartition("/")[2]
        if any(found.endswith(f"/{name}") for found in client.list_queues().get("QueueUrls", [])):
            client.delete_queue(QueueUrl=url)
        client.create_queue(QueueName=name)
    return SqsBench(bench, urls[0], client, *urls)


@pytest.fixture
def queue_bench(
    bench: Bench,
    valkey: tuple[int, redis.Redis],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> QueueBench:
    in_one_thread(settings, monkeypatch)
    port, client = valkey
    client.flushall()
    return QueueBench(bench, f"redis://127.0.0.1:{port}/{STREAM}", client, port)
