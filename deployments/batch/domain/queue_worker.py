"""Answer messages until none is left: a part of the program of queue workers (program.py).

A message is acknowledged after its answer is durable: in a part in the object store, or beside the messages.
What was answered by a worker that died before it acknowledged is read from that worker's part and not sent to the model again.
"""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from deployments.batch.domain.csv_rows import BadRow
from deployments.batch.domain.sources.message import Message
from deployments.batch.domain.sources.requests import body_of
from deployments.batch.domain.worker_store import (
    DETAIL_LENGTH,
    POLL_SECONDS,
    Json,
    pause,
)

WAIT_MS = 1000
# A part is written at this size, or when the queue is empty.
PART_ROWS, PART_BYTES, PART_SECONDS = 10_000, 16 << 20, 30
REPORT_SECONDS = 5
# Delivered again in small groups, and for the last time alone: a message that crashes its worker then fails alone.
SUSPECTS = 32
# Ids of messages that were answered, by which a further delivery is known.
REMEMBERED = 500_000


class QueueConsumer:
    """The consumer of a queue. `source` follows sources/interface.py; `outbox` and `server` are an Outbox and a
    Server.
    """

    def __init__(
        self, plan: Json, source: Any, outbox: Any, server: Any, stopping: threading.Event
    ) -> None:
        self.plan, self.source, self.outbox, self.server = plan, source, outbox, server
        self.stopping, self.lock = stopping, threading.Lock()
        # A queue that takes messages away after so many deliveries.
        self.tries = min(plan["tries"], source.max_deliveries or plan["tries"])
        # Answered, by id; in the order of dict.
        self.known: dict[str, None] = {}
        self.recovered = float("-inf")
        # Taken and not settled, by id.
        self.held: dict[str, Message] = {}
        self.answered: list[Any] = []
        self.dead: list[Any] = []
        self.retried, self.size = 0, 0
        self.counts: Json = {"answered": 0, "dead": 0, "retried": 0, "error": ""}
        self.since = self.reported = self.busy = time.monotonic()

    def run(self) -> None:
        try:
            with ThreadPoolExecutor(self.plan["requests"]) as pool:
                while not self.stopping.is_set() and self.step(pool):
                    pass
        finally:
            self.end()
        self.report()
        self.source.leave()

    def end(self) -> None:
        """Flush what was answered and release the rest, whatever the reason for stopping."""
        try:
            self.flush()
        finally:
            # One of them may have ended Triton: then each counts as delivered.
            if self.server.is_alive:
                # No heartbeat takes back what is released.
                with self.lock:
                    held, self.held = list(self.held.values()), {}
                    self.source.release(held)

    def step(self, pool: ThreadPoolExecutor) -> bool:
        """Make one pass over the queue. False when there is nothing left to do."""
        claimed = self.source.claim(self.plan["redelivery"] * 1000, SUSPECTS)
        lost = [message for message in claimed if message.id not in self.held]
        if lost:
            self.flush()
            self.hold(lost)
            for group in self.groups(lost):
                self.try_again(group, pool)
            return True
        messages = self.new_of(self.source.read(self.plan["requests"] * 4, WAIT_MS))
        self.hold(messages)
        again = [message for message in messages if message.deliveries > 1]
        self.score([message for message in messages if message.deliveries == 1], pool)
        if not messages or again or self.source.flushes or self.is_part_full():
            self.flush()
        for group in self.groups(sorted(again, key=lambda message: message.deliveries)):
            if not self.stopping.is_set():
                self.score(self.source.take(group), pool)
                self.flush()
        return bool(messages) or not self.is_idle()

    def new_of(self, messages: list[Message]) -> list[Message]:
        """Return the messages that this worker does not hold yet. A held one takes over its newest handle."""
        for message in messages:
            if message.id in self.held:
                self.held[message.id].handle = message.handle
        return [message for message in messages if message.id not in self.held]

    def groups(self, lost: list[Message]) -> list[list[Message]]:
        alone = [[m] for m in lost if m.deliveries >= self.tries]
        others = [m for m in lost if m.deliveries < self.tries]
        return [others, *alone] if others else alone

    def try_again(self, group: list[Message], pool: ThreadPoolExecutor) -> None:
        """Take a group and send it to the model again. Only what is sent next counts as delivered."""
        if self.stopping.is_set():
            return
        taken = self.source.take(group)
        with self.lock:
            for message in group:
                self.held.pop(message.id, None)
        self.hold(taken)
        self.score(taken, pool)
        self.flush()

    def hold(self, messages: list[Message]) -> None:
        with self.lock:
            self.held.update({message.id: message for message in messages})
        if messages:
            self.busy = time.monotonic()

    def keep_held(self) -> None:
        """Keep the held messages from other workers while this worker lives."""
        with self.lock:
            self.source.keep(list(self.held.values()))

    def is_part_full(self) -> bool:
        if not self.plan["parts"]:
            return True
        age = time.monotonic() - self.since
        return len(self.answered) >= PART_ROWS or self.size >= PART_BYTES or age >= PART_SECONDS

    def is_idle(self) -> bool:
        if time.monotonic() - self.busy < self.plan["idle"]:
            return False
        unread, pending = self.source.depth()
        # Pending ones belong to workers that live, or can be claimed soon.
        return not unread and not pending

    def filter_unanswered(self, messages: list[Message]) -> list[Message]:
        """Return the messages without a durable answer.

        The others have one: their worker died before it acknowledged them, or they were delivered again.
        """
        if self.plan["parts"] and any(message.deliveries > 1 for message in messages):
            self.recover()
        done = [message for message in messages if message.id in self.known]
        if done:
            self.source.acknowledge(done)
            with self.lock:
                for message in done:
                    self.held.pop(message.id, None)
        return [message for message in messages if message.id not in self.known]

    def recover(self) -> None:
        """Read what workers wrote and did not report, and report it. What dies now is not delivered again before."""
        if time.monotonic() - self.recovered < self.plan["redelivery"] / 2:
            return
        self.recovered = time.monotonic()
        for number, ids in self.outbox.list_unreported():
            self.remember(ids)
            self.counts["answered"] += len(ids)
            self.report(number, len(ids))

    def remember(self, ids: list[str]) -> None:
        self.known.update(dict.fromkeys(ids))
        while len(self.known) > REMEMBERED:
            del self.known[next(iter(self.known))]

    def score(self, messages: list[Message], pool: ThreadPoolExecutor) -> None:
        messages = self.filter_unanswered(messages)
        for message, row in zip(messages, pool.map(self.answer, messages)):  # noqa: B905  Python 3.9
            if row is None:
                continue
            if "error" in row:
                self.dead.append((message, row["error"]))
                continue
            row.pop("row", None)
            body = json.dumps({"message": message.id, **row}).encode()
            self.size += len(body)
            # Up to a part is held.
            message.fields = {}
            self.answered.append((message, body))

    def answer(self, message: Message) -> Any:
        """Return the row of the output, with an `error` if it is a dead letter. None if it was not tried because
        the worker stops.
        """
        if self.stopping.is_set():
            return None
        if message.deliveries > self.tries:
            times = message.deliveries - 1
            return {"error": f"it was delivered {times} times and its worker ended each time"}
        try:
            body = body_of(message, self.plan["columns"])
        except BadRow as error:
            return {"error": str(error)[:DETAIL_LENGTH]}
        row: Any = None
        for attempt in range(self.plan["tries"]):
            if attempt:
                with self.lock:
                    self.retried += 1
                pause(POLL_SECONDS * 2**attempt)
            row = self.server.answer(0, body)
            if "error" not in row:
                break
        return row

    def flush(self) -> None:
        """Write the answers durably, then acknowledge their messages, then report."""
        answered, dead = self.answered, self.dead
        self.answered, self.dead, self.size = [], [], 0
        self.since = time.monotonic()
        part = None
        if answered and self.plan["parts"]:
            body = b"".join(body + b"\n" for _, body in answered)
            part = self.outbox.create("parts", body)
            self.remember([message.id for message, _ in answered])
            self.source.acknowledge([message for message, _ in answered])
        elif answered:
            self.source.answer(answered)
        if dead:
            self.source.bury(dead)
        with self.lock:
            for message, _ in (*answered, *dead):
                self.held.pop(message.id, None)
        self.counts["answered"] += len(answered)
        self.counts["dead"] += len(dead)
        self.counts["error"] = dead[-1][1] if dead else self.counts["error"]
        self.counts["retried"], self.retried = self.counts["retried"] + self.retried, 0
        if part is not None:
            self.report(part, len(answered))
        # No dead letter is found again, as a part is.
        elif dead or time.monotonic() - self.reported >= REPORT_SECONDS:
            self.report()

    def report(self, part: int | None = None, rows: int = 0) -> None:
        counts = self.counts
        unread, pending = self.source.depth()
        waiting = None if unread is None else unread + pending
        report = {**counts, "waiting": waiting, "part": part, "rows": rows}
        self.outbox.create("reports", json.dumps(report).encode())
        self.counts = {"answered": 0, "dead": 0, "retried": 0, "error": ""}
        self.reported = time.monotonic()
