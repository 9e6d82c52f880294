"""KEDA itself with the ScaledJob of a job that drains a topic: workers from zero by the lag of its group."""

from __future__ import annotations

from collections.abc import Callable

from deployments.batch.domain import queues
from deployments.batch.domain.settings import BatchSettings
from tests.cluster.kafka.broker import USER, Broker
from tests.cluster.keda import draining
from tests.cluster.keda.fixtures import Scaled
from tests.cluster.test_keda import kafka

__all__ = ["kafka"]


def test_messages_of_a_topic_start_workers_and_none_when_all_are_committed(
    scaled: Scaled, kafka: Broker, journey: Callable[[str], None]
) -> None:
    secret = {"sasl": "plaintext", "username": USER, "password": kafka.password, "tls": "disable"}
    draining.make_secret(scaled, "kafka-auth", secret)
    settings = BatchSettings(
        instance_type="g5.xlarge", workers=3, secret="kafka-auth", messages_per_worker=4
    )
    queue = queues.read(f"kafka://{kafka.address}/requests", "s3://b/batch/vision/out/", settings)
    kafka.create_topic("requests", partitions=2)
    # The group has committed nothing yet.
    kafka.send("requests", range(3))
    draining.start(scaled, settings, queue)
    draining.wait_for_workers(scaled, 1)

    kafka.send("requests", range(100))
    draining.wait_for_workers(scaled, 2)

    kafka.read_all("requests", queue.group)
    draining.wait_until_empty(scaled)
    draining.end(scaled)
    journey("KEDA: 3 messages of Kafka made 1 worker, 103 the 2 of its partitions, none no more")
