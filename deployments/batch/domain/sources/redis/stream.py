"""A stream of Redis or Valkey as the source of a queue worker: a part of its program (program.py).

A message that was read is pending until it is acknowledged. Ids are text, fields are bytes.
"""

from __future__ import annotations

import os
from typing import Any

from deployments.batch.domain.sources.message import Message
from deployments.batch.domain.sources.redis.resp import Redis, RedisError
from deployments.batch.domain.worker_store import Json

# A pending message that its worker gave back: idle for a day, so that the next one takes it at once.
RELEASED_MS = 86_400_000
# Its entry is added only by the call that acknowledges the message, so it is there once.
SETTLE = """
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
return 1
"""


class RedisStream:
    """A stream as a source. `consumer` is the name of this worker in the group."""

    max_deliveries: int | None = None
    flushes = False

    def __init__(self, source: Json, consumer: str) -> None:
        self.redis = Redis(source, os.environ.get("SLIPWAY_QUEUE_PASSWORD", ""))
        self.stream, self.group, self.consumer = source["stream"], source["group"], consumer
        self.answers, self.dead_letters = source["answers"], source["dead_letters"]
        # Where the search among pending messages goes on: most of them belong to workers that live.
        self.cursor = b"0-0"

    def prepare(self) -> None:
        """Create the group if it is missing: it begins with the oldest message."""
        try:
            self.redis.call("XGROUP", "CREATE", self.stream, self.group, "0", "MKSTREAM")
        except RedisError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    def read(self, count: int, wait_ms: int) -> list[Message]:
        """Read messages that no worker had; wait for the first."""
        command = ["XREADGROUP", "GROUP", self.group, self.consumer, "COUNT", count]
        try:
            answer = self.redis.call(*command, "BLOCK", wait_ms, "STREAMS", self.stream, ">")
        except RedisError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            # The stream was deleted meanwhile.
            self.prepare()
            return []
        return [message_of(entry, 1) for _, entries in answer or () for entry in entries]

    def claim(self, idle_ms: int, count: int) -> list[Message]:
        """Return messages whose worker is gone, without their fields until they are taken. `deliveries` includes
        the next one.
        """
        command = ["XAUTOCLAIM", self.stream, self.group, self.consumer, idle_ms, self.cursor]
        self.cursor, ids = self.redis.call(*command, "COUNT", count, "JUSTID")[:2]
        if not ids:
            return []
        pending = self.redis.calls([["XPENDING", self.stream, self.group, n, n, 1] for n in ids])
        return [
            Message(rows[0][0].decode(), {}, int(rows[0][3]) + 1)
            for rows in pending
            if isinstance(rows, list) and rows
        ]

    def take(self, messages: list[Message]) -> list[Message]:
        """Deliver claimed messages again, which counts. Those that were deleted meanwhile are left out."""
        command = ["XCLAIM", self.stream, self.group, self.consumer, 0]
        entries = self.redis.call(*command, *(message.id for message in messages))
        fields = {m.id: m.fields for m in (message_of(entry, 0) for entry in entries if entry)}
        return [Message(m.id, fields[m.id], m.deliveries) for m in messages if m.id in fields]

    def keep(self, messages: list[Message]) -> None:
        """Keep messages that are worked on from other workers, without a further delivery."""
        if ids := [message.id for message in messages]:
            self.redis.call("XCLAIM", self.stream, self.group, self.consumer, 0, *ids, "JUSTID")

    def release(self, messages: list[Message]) -> None:
        """Give messages back, as if they had not been delivered this time."""
        command = ["XCLAIM", self.stream, self.group, self.consumer, 0]
        self.redis.calls(
            [
                [*command, m.id, "IDLE", RELEASED_MS, "RETRYCOUNT", m.deliveries - 1, "JUSTID"]
                for m in messages
            ]
        )

    def acknowledge(self, messages: list[Message]) -> int:
        """Acknowledge messages whose answers are durable elsewhere. Returns how many still were pending."""
        ids = [message.id for message in messages]
        return int(self.redis.call("XACK", self.stream, self.group, *ids)) if ids else 0

    def answer(self, answered: list[Any]) -> int:
        """Add pairs of a message and its answer to the stream of answers. Returns how many are new there."""
        return self.settle(
            self.answers,
            [(message, ["message", message.id, "answer", body]) for message, body in answered],
        )

    def bury(self, dead: list[Any]) -> int:
        """Add pairs of a message and its reason to the dead letters, with the message's own fields."""
        return self.settle(
            self.dead_letters,
            [
                (
                    message,
                    [
                        *(part for pair in message.fields.items() for part in pair),
                        *("slipway.id", message.id),
                        *("slipway.reason", reason),
                        *("slipway.deliveries", message.deliveries),
                    ],
                )
                for message, reason in dead
            ],
        )

    def settle(self, target: str, entries: list[Any]) -> int:
        command = ["EVAL", SETTLE, 2, self.stream, target, self.group]
        answers = self.redis.calls([[*command, message.id, *fields] for message, fields in entries])
        for answer in answers:
            if isinstance(answer, RedisError):
                raise answer
        return sum(answers)

    def depth(self) -> Any:
        """Return how many messages nobody has read yet (None if the server cannot say), and how many are pending."""
        try:
            groups = self.redis.call("XINFO", "GROUPS", self.stream)
        except RedisError:
            return 0, 0
        for row in groups:
            group = dict(zip(row[::2], row[1::2]))  # noqa: B905  Python 3.9
            if group[b"name"].decode() == self.group:
                return group.get(b"lag"), group[b"pending"]
        return int(self.redis.call("XLEN", self.stream)), 0

    def leave(self) -> None:
        """Delete the consumer if nothing is pending, because its pending messages would go with it."""
        rows = self.redis.call("XPENDING", self.stream, self.group, "-", "+", 1, self.consumer)
        if not rows:
            self.redis.call("XGROUP", "DELCONSUMER", self.stream, self.group, self.consumer)


def message_of(entry: Any, deliveries: int) -> Message:
    number, pairs = entry
    fields = {
        name.decode(errors="replace"): value
        for name, value in zip(pairs[::2], pairs[1::2])  # noqa: B905  Python 3.9
    }
    return Message(number.decode(), fields, deliveries)
