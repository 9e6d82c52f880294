"""A topic of Kafka as the source of a queue worker: a part of its program (program.py).

The client is kafka-python, which the worker has loaded before (queue_program.py). Each read is settled before the next
one, so that a rebalance, which happens while it reads, finds nothing in hand.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from deployments.batch.domain.sources.kafka.marks import PartitionMark
from deployments.batch.domain.sources.message import BODY, Message, QueueError
from deployments.batch.domain.worker_store import NEVER, Json, WorkerEnded

# Messages of one read: those of a part of the output.
READ_MESSAGES, READ_BYTES = 1000, 16 << 20
# A worker that is silent for so long loses its partitions, and one that reads nothing more for so long.
SESSION_MS, READ_EVERY_MS = 45_000, 3_600_000
# Joining the group takes several messages of its coordinator.
POLL_MS = 500
KAFKA_SECONDS = 30
REQUEST_BYTES = 2 << 20
CUT_BYTES = 10_000
SASL = {"plaintext": "PLAIN", "scram_sha256": "SCRAM-SHA-256", "scram_sha512": "SCRAM-SHA-512"}


class KafkaSource:
    """A topic as a source. `source` is the plan's part that KafkaKind.read makes."""

    # Each read is followed by a flush.
    flushes = True
    max_deliveries: int | None = None

    def __init__(self, source: Json, consumer: str) -> None:
        self.kafka: Any = importlib.import_module("kafka")
        self.errors: Any = importlib.import_module("kafka.errors")
        self.topic, self.dead_letters = source["topic"], source["dead_letters"]
        self.settings = {
            "bootstrap_servers": source["servers"],
            "client_id": consumer,
            **authentication_of(os.environ),
        }
        self.consumer: Any = self.call(
            self.kafka.KafkaConsumer,
            **self.settings,
            group_id=source["group"],
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            max_poll_records=READ_MESSAGES,
            fetch_max_bytes=READ_BYTES,
            max_poll_interval_ms=READ_EVERY_MS,
            session_timeout_ms=SESSION_MS,
            metrics_enabled=False,
        )
        self.producer: Any = None
        self.marks: dict[int, PartitionMark] = {}
        self.generation: Any = None
        # Polled and not delivered.
        self.waiting: list[Any] = []

    def prepare(self) -> None:
        for name, what in ((self.topic, "messages"), (self.dead_letters, "dead letters")):
            if not self.partitions_of(name):
                detail = f"there is no topic {name} for {what}: make it, or name another one"
                raise WorkerEnded(NEVER, detail)
        self.call(self.consumer.subscribe, [self.topic])

    def partitions_of(self, name: str) -> list[Any]:
        numbers = self.call(self.consumer.partitions_for_topic, name)
        return [self.kafka.TopicPartition(name, n) for n in sorted(numbers or ())]

    def read(self, _count: int, wait_ms: int) -> list[Message]:
        """Read messages. New ones are committed as sent before they are returned; the others wait for `take`."""
        if not self.waiting:
            polled = self.call(
                self.consumer.poll, timeout_ms=max(wait_ms, POLL_MS), max_records=READ_MESSAGES
            )
            self.note_assignment()
            records = [record for found in polled.values() for record in found]
            self.waiting = [r for r in records if r.offset not in self.marks[r.partition].done]
        counted = [(r, self.marks[r.partition].deliveries(r.offset)) for r in self.waiting]
        # Of each partition those at its head that were sent equally often: settled before what comes after them.
        head: dict[int, int] = {}
        chosen: list[Any] = []
        left: list[Any] = []
        for record, deliveries in counted:
            is_next = head.setdefault(record.partition, deliveries) == deliveries
            head[record.partition] = deliveries if is_next else 0
            (chosen if is_next else left).append((record, deliveries))
        self.waiting = [record for record, _ in left]
        messages = [message_of_record(record, deliveries) for record, deliveries in chosen]
        self.take([message for message in messages if message.deliveries == 1])
        return messages

    def note_assignment(self) -> None:
        """Read, after a rebalance, what the group knows of the partitions that are now this worker's."""
        generation = self.call(self.consumer.group_metadata).generation_id
        if generation == self.generation:
            return
        self.generation, self.marks = generation, {}
        for partition in self.call(self.consumer.assignment):
            committed = self.call(self.consumer.committed, partition, metadata=True)
            mark = (
                PartitionMark(committed.offset, committed.metadata)
                if committed
                else PartitionMark(None)
            )
            self.marks[partition.partition] = mark

    def claim(self, _idle_ms: int, _count: int) -> list[Message]:
        return []

    def take(self, messages: list[Message]) -> list[Message]:
        """Commit that the messages are sent next, which counts as a delivery."""
        for number, group in by_partition(messages).items():
            deliveries = max(message.deliveries for message in group)
            self.marks[number].send([message.handle.offset for message in group], deliveries)
        self.commit(by_partition(messages))
        return messages

    def keep(self, _messages: list[Message]) -> None:
        """Do nothing: the client reports by itself that the worker lives."""

    def release(self, messages: list[Message]) -> None:
        """Give messages back as if they had not been sent."""
        groups = by_partition(messages)
        for number in groups:
            mark = self.marks[number]
            mark.tries = max(0, mark.tries - 1)
        self.commit(groups)

    def acknowledge(self, messages: list[Message]) -> int:
        groups = by_partition(messages)
        for number, group in groups.items():
            mark = self.marks[number]
            for message in group:
                mark.settle(message.handle.offset)
            mark.advance()
        self.commit(groups)
        return len(messages)

    def commit(self, numbers: Any) -> None:
        offsets = {}
        for number in numbers:
            mark = self.marks[number]
            where = self.kafka.TopicPartition(self.topic, number)
            offsets[where] = self.kafka.OffsetAndMetadata(mark.offset, mark.text(), -1)
        if offsets:
            self.call(self.consumer.commit, offsets)

    def answer(self, _answered: list[Any]) -> int:
        raise NotImplementedError("answers to messages of Kafka go to the object store")

    def bury(self, dead: list[Any]) -> int:
        """Send pairs of a message and its reason to the dead letters: the message as it is, with the reason in its
        headers. Then commit them.
        """
        if self.producer is None:
            self.producer = self.call(
                self.kafka.KafkaProducer,
                **self.settings,
                acks="all",
                max_request_size=REQUEST_BYTES,
                allow_auto_create_topics=False,
                metrics_enabled=False,
            )
        for message, reason in dead:
            record = message.handle
            try:
                self.send_dead(message, reason, record.value)
            except self.errors.MessageSizeTooLargeError:
                # With its reason it is larger than the topic allows.
                self.send_dead(message, f"{reason} (the message is cut)", record.value[:CUT_BYTES])
        self.acknowledge([message for message, _ in dead])
        return len(dead)

    def send_dead(self, message: Message, reason: str, value: Any) -> None:
        record = message.handle
        headers = [
            *record.headers,
            ("slipway.id", message.id.encode()),
            ("slipway.reason", reason.encode()),
            ("slipway.deliveries", str(message.deliveries).encode()),
        ]
        try:
            sent = self.producer.send(self.dead_letters, value, record.key, headers)
            sent.get(timeout=KAFKA_SECONDS)
        except self.errors.MessageSizeTooLargeError:
            raise
        except self.errors.KafkaError as error:
            raise QueueError(f"{type(error).__name__}: {error}") from None

    def depth(self) -> Any:
        """Return how many messages are not committed, whether taken or not, and 0."""
        partitions = self.partitions_of(self.topic)
        first = self.call(self.consumer.beginning_offsets, partitions)
        last = self.call(self.consumer.end_offsets, partitions)
        count = 0
        for partition in partitions:
            committed = self.call(self.consumer.committed, partition)
            count += last[partition] - max(first[partition], committed or 0)
        return max(0, count), 0

    def leave(self) -> None:
        if self.producer is not None:
            self.call(self.producer.close, timeout=KAFKA_SECONDS)
        self.call(self.consumer.close, autocommit=False)

    def call(self, function: Any, *values: Any, **named: Any) -> Any:
        try:
            return function(*values, **named)
        except self.errors.UnsupportedCodecError as error:
            detail = f"workers read messages without compression or with gzip: {error}"
            raise WorkerEnded(NEVER, detail) from None
        except self.errors.KafkaError as error:
            raise QueueError(f"{type(error).__name__}: {error}") from None


def message_of_record(record: Any, deliveries: int) -> Message:
    number = f"{record.partition}-{record.offset}"
    return Message(number, {BODY: record.value or b""}, deliveries, record)


def by_partition(messages: list[Message]) -> dict[int, list[Message]]:
    groups: dict[int, list[Message]] = {}
    for message in messages:
        groups.setdefault(message.handle.partition, []).append(message)
    return groups


def authentication_of(env: Any) -> Json:
    """Return the client's authentication from the keys of the Secret: sasl, username, password and tls, with KEDA's
    values. Raises Ended for another sasl.
    """
    sasl, is_encrypted = env.get("SLIPWAY_KAFKA_SASL", ""), env.get("SLIPWAY_KAFKA_TLS") == "enable"
    if sasl in ("", "none"):
        return {"security_protocol": "SSL" if is_encrypted else "PLAINTEXT"}
    if sasl not in SASL:
        raise WorkerEnded(
            NEVER, f"the key sasl of the Secret is {sasl}; use one of {', '.join(SASL)}"
        )
    return {
        "security_protocol": "SASL_SSL" if is_encrypted else "SASL_PLAINTEXT",
        "sasl_mechanism": SASL[sasl],
        "sasl_plain_username": env.get("SLIPWAY_KAFKA_USERNAME", ""),
        "sasl_plain_password": env.get("SLIPWAY_KAFKA_PASSWORD", ""),
    }
