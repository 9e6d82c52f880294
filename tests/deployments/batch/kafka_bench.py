"""A job that drains a topic of a real Kafka into a real store; the worker's program runs here, without Triton."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from tests.deployments.batch.queue_bench import Drain, request_of

GROUP = "slipway"


@dataclass
class KafkaBench(Drain):
    """`settings` are those of clients of the broker."""

    topic: str
    settings: dict[str, Any]

    def send(self, *values: int, partition: int = 0) -> list[str]:
        return self.send_bodies(
            *(request_of(value).encode() for value in values), partition=partition
        )

    def send_bodies(self, *bodies: bytes, partition: int = 0, **more: Any) -> list[str]:
        producer = _kafka().KafkaProducer(**self.settings)
        sent = [producer.send(self.topic, body, partition=partition, **more) for body in bodies]
        offsets = [item.get(timeout=30).offset for item in sent]
        producer.close()
        return [f"{partition}-{offset}" for offset in offsets]

    def letters(self) -> list[dict[str, str]]:
        """Value and headers of each dead letter."""
        consumer = _kafka().KafkaConsumer(
            f"{self.topic}-dead",
            **self.settings,
            auto_offset_reset="earliest",
            consumer_timeout_ms=1500,
        )
        letters = [
            {"body": item.value.decode(), **{name: value.decode() for name, value in item.headers}}
            for item in consumer
        ]
        consumer.close()
        return letters

    def lag(self) -> int:
        """Messages of all partitions that the group has not committed."""
        consumer = _kafka().KafkaConsumer(**self.settings, group_id=GROUP, enable_auto_commit=False)
        partitions = [
            _kafka().TopicPartition(self.topic, n)
            for n in consumer.partitions_for_topic(self.topic)
        ]
        ends = consumer.end_offsets(partitions)
        lag = sum(ends[item] - (consumer.committed(item) or 0) for item in partitions)
        consumer.close()
        return int(lag)


def _kafka() -> Any:
    return importlib.import_module("kafka")
