"""What a kind of queue is made of: a package beside this file with both halves, and its line in catalogue.py.

`QueueKind` is the portal's half: addresses, refusals and manifests. `Source` is the worker's half: it travels as text
(program.py), so it has the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.sources.message import Message


@dataclass(frozen=True, slots=True)
class Queue:
    """`plan` is what the worker's half is given. `servers` are the hosts and ports that workers reach. `group` is empty
    where the kind has none. `answers` is the place beside the messages that gets the answers; empty: the object store.
    """

    kind: QueueKind
    plan: Mapping[str, Any]
    servers: tuple[tuple[str, int], ...]
    name: str
    group: str
    dead_letters: str
    answers: str = ""


class QueueKind(Protocol):
    """`settings` of BatchSettings are checked by `read`. Each method raises Rejected with the field."""

    @property
    def example(self) -> str: ...

    @property
    def schemes(self) -> tuple[str, ...]:
        """How its addresses begin, in small letters."""

    @property
    def modules(self) -> tuple[ModuleType, ...]:
        """The worker's half, in the order of their text; the last one has `source_class`."""

    @property
    def source_class(self) -> str: ...

    def library(self) -> bytes | None:
        """What the worker's half imports beside the standard library: a zip archive of pure Python, whose SHA-256 is in the
        plan as `library`.
        """

    def places_of(self, address: str) -> tuple[str, ...]:
        """What SLIPWAY_BATCH_QUEUES has to match, each: "host:port", with more behind it where a server has many owners."""

    def check_output(self, output: str, source: str) -> None:
        """Of an output that is a queue: whether answers may go there."""

    def read(self, source: str, output: str, settings: BatchSettings) -> Queue: ...

    def triggers(self, queue: Queue, settings: BatchSettings) -> list[dict[str, Any]]:
        """KEDA's, without their authentication. They count what waits and what is taken and not settled."""

    def authentication(self, settings: BatchSettings) -> dict[str, Any] | None:
        """The spec of KEDA's TriggerAuthentication; None: it needs none."""

    def environment(self, settings: BatchSettings) -> list[dict[str, Any]]:
        """How the workers authenticate."""


class Source(Protocol):
    """One worker's connection. Calls raise SourceError, and Ended (worker_store.py) where trying again cannot help."""

    @property
    def max_deliveries(self) -> int | None:
        """After as many the queue takes a message away by itself."""

    @property
    def flushes(self) -> bool:
        """Whether each read must be settled before the next one."""

    def prepare(self) -> None:
        """Make or check what must be there before a message is taken."""

    def read(self, count: int, wait_ms: int) -> list[Message]:
        """At most `count`; waits for the first."""

    def claim(self, idle_ms: int, count: int) -> list[Message]:
        """Messages whose worker is gone, without fields until they are taken. Empty where `read` delivers them again."""

    def take(self, messages: list[Message]) -> list[Message]:
        """Deliver claimed ones: only that counts as a delivery."""

    def keep(self, messages: list[Message]) -> None:
        """They are worked on: nobody else gets them, and it is no delivery. Called from another thread."""

    def release(self, messages: list[Message]) -> None:
        """Give them back: the next worker has them at once."""

    def acknowledge(self, messages: list[Message]) -> int:
        """Their answers are durable."""

    def answer(self, answered: list[tuple[Message, bytes]]) -> int:
        """Write the answers beside the messages and acknowledge these at once. Only where `answers` is not empty."""

    def bury(self, dead: list[tuple[Message, str]]) -> int:
        """To the dead letters with the reason, then acknowledge."""

    def depth(self) -> tuple[int | None, int]:
        """Messages that wait (None: not known), and those that are taken and not settled."""

    def leave(self) -> None: ...


def environment_of(secret: str, names: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Variables of a Secret of the team: pairs of a variable and a key."""
    if not secret:
        return []
    return [
        {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for variable, key in names
    ]


def secret_parameters(secret: str, names: Sequence[tuple[str, str]]) -> dict[str, Any] | None:
    """Of a TriggerAuthentication: pairs of KEDA's parameter and a key. None without a Secret."""
    if not secret:
        return None
    return {
        "secretTargetRef": [
            {"parameter": parameter, "name": secret, "key": key} for parameter, key in names
        ]
    }
