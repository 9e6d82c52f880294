"""A job that drains a stream of a real Valkey into a real store; the worker's program runs here, without Triton."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis

from deployments.batch.domain import worker_store
from deployments.batch.domain.queue_worker import QueueConsumer
from deployments.batch.domain.sources import catalogue
from deployments.batch.domain.worker_outbox import Outbox
from deployments.models import BatchJob
from tests.deployments.batch.bench import Bench

STREAM, GROUP, DEAD = "requests", "slipway", "requests:dead"


class Killed(BaseException):
    """SIGKILL: nothing of the worker runs after it."""


def run_until_killed(
    consumer: Any, monkeypatch: pytest.MonkeyPatch, owner: type, effect: str, moment: str
) -> bool:
    """A worker that is killed before or after its first such effect. False: it ended without one."""
    whole = getattr(owner, effect)
    killed = []

    def dying(self: Any, *args: Any, **more: Any) -> Any:
        if moment == "after":
            whole(self, *args, **more)
        killed.append(effect)
        raise Killed

    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr(owner, effect, dying)
        # A process that is killed runs no clean-up.
        patch.setattr(consumer, "end", lambda: None if killed else type(consumer).end(consumer))
        consumer.run()
    return bool(killed)


@dataclass
class Triton:
    """In its place: doubles the number of a message. `crashes_at` ends it, `refuses` gets an error each time."""

    crashes_at: frozenset[int] = frozenset()
    refuses: frozenset[int] = frozenset()
    asked: list[int] = field(default_factory=list)
    is_alive: bool = True

    def answer(self, number: int, line: bytes) -> dict[str, Any]:
        value = json.loads(line)["inputs"][0]["data"][0]
        self.asked.append(value)
        if value in self.crashes_at:
            self.is_alive = False
            raise worker_store.WorkerEnded(1, "Triton ended while it answered")
        if value in self.refuses:
            return {"row": number, "error": f"the model refuses {value}"}
        return {"row": number, "outputs": [2 * value]}


@dataclass
class Drain:
    """A job and its workers, whatever it drains."""

    bench: Bench
    address: str
    workers: int = field(default=0, kw_only=True)
    sources: list[Any] = field(default_factory=list, kw_only=True)

    def running(self, **changed: Any) -> BatchJob:
        job = self.bench.request(**{"input": self.address, **changed})
        self.bench.tick(job)
        assert job.state == "running", job.state_reason
        return self.bench.tick(job)

    def consumer(self, triton: Triton | None = None, **plan: Any) -> QueueConsumer:
        """What the next pod of the job runs."""
        self.workers += 1
        (made,) = self.bench.made("ScaledJob")
        pod = made["spec"]["jobTargetRef"]["template"]["spec"]
        env = {item["name"]: item.get("value") for item in pod["containers"][0]["env"]}
        found = {**json.loads(env["SLIPWAY_BATCH"]), "idle": 0, "redelivery": 0, **plan}
        kind = catalogue.kind_of(self.address)
        assert kind is not None
        source = getattr(kind.modules[-1], kind.source_class)(
            found["source"], f"pod-{self.workers}"
        )
        self.sources.append(source)
        source.prepare()
        stopping = threading.Event()
        outbox = Outbox(self.bench.link(), stopping)
        return QueueConsumer(found, source, outbox, triton or Triton(), stopping)

    def work(self, triton: Triton | None = None, **plan: Any) -> Triton:
        """Until nothing is left."""
        triton = triton or Triton()
        self.consumer(triton, **plan).run()
        return triton

    def answered(self) -> dict[str, Any]:
        """What the parts hold, by the id of the message; each has one answer."""
        rows = self.bench.rows()
        answers = {row["message"]: row["outputs"] for row in rows}
        assert len(answers) == len(rows), "an answer is there twice"
        return answers


@dataclass
class QueueBench(Drain):
    """A stream of a real Valkey."""

    client: redis.Redis
    port: int

    def running(self, *, answers: str = "", **changed: Any) -> BatchJob:
        output = f"redis://127.0.0.1:{self.port}/{answers}" if answers else ""
        return super().running(**({"output": output} if output else {}), **changed)

    def send(self, *values: int) -> list[str]:
        return [
            self.client.xadd(STREAM, {"request": request_of(value)}).decode() for value in values
        ]

    def entries(self, stream: str) -> list[dict[str, str]]:
        return [
            {name.decode(): value.decode() for name, value in entry.items()}
            for _, entry in self.client.xrange(stream)
        ]

    def answers(self, stream: str = "answers") -> dict[str, Any]:
        """By the id of the message; each has one."""
        rows = [json.loads(entry["answer"]) for entry in self.entries(stream)]
        answers = {row["message"]: row["outputs"] for row in rows}
        assert len(answers) == len(rows), "an answer is there twice"
        return answers

    def pending(self) -> int:
        found: Mapping[str, Any] = self.client.xpending(STREAM, GROUP)
        return int(found["pending"])


def request_of(value: int) -> str:
    tensor = {"name": "x", "shape": [1], "datatype": "INT32", "data": [value]}
    return json.dumps({"inputs": [tensor]})
