"""The interface of a kind of queue: a package beside this file with both halves, and its line in catalogue.py.

`QueueKind` is the portal's half: addresses, refusals and manifests. `Source` is the worker's half: it travels as
text (program.py), so it has the standard library only, and what `QueueKind.library` sends along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.sources.library import Library
from deployments.batch.domain.sources.message import Message


@dataclass(frozen=True, slots=True)
class MessageQueue:
    """A queue of messages. `plan` is passed to the worker's half; `servers` are the hosts and ports that workers
    reach.

    `group` is empty if the kind has none. `answers` is the place beside the messages that gets the answers; empty
    means the object store.
    """

    kind: QueueKind
    plan: Mapping[str, Any]
    servers: tuple[tuple[str, int], ...]
    name: str
    group: str
    dead_letters: str
    answers: str = ""


class QueueKind(Protocol):
    """The portal's half of a kind of queue. `read` checks the settings in BatchSettings. Each method raises
    Rejected with the field.
    """

    @property
    def example(self) -> str: ...

    @property
    def schemes(self) -> tuple[str, ...]:
        """The lowercase beginnings of its addresses."""

    @property
    def modules(self) -> tuple[ModuleType, ...]:
        """The modules of the worker's half, in the order of their text. The last one has `source_class`."""

    @property
    def source_class(self) -> str: ...

    def library(self) -> Library | None:
        """Return the packages that the worker's half imports besides the standard library. None if it needs none.

        The digest of their archive is in the plan as `library`.
        """

    def places_of(self, address: str) -> tuple[str, ...]:
        """Return the places that SLIPWAY_BATCH_QUEUES has to match.

        Each is "host:port", followed by more where a server has many owners.
        """

    def check_output(self, output: str, source: str) -> None:
        """Check that answers may go to an output that is a queue."""

    def read(self, source: str, output: str, settings: BatchSettings) -> MessageQueue: ...

    def triggers(self, queue: MessageQueue, settings: BatchSettings) -> list[dict[str, Any]]:
        """Return KEDA's triggers without their authentication. They count messages that wait, and those that are
        taken and not settled.
        """

    def authentication(self, settings: BatchSettings) -> dict[str, Any] | None:
        """Return the spec of KEDA's TriggerAuthentication. None if it needs none."""

    def environment(self, settings: BatchSettings) -> list[dict[str, Any]]:
        """Return the variables with which the workers authenticate."""


class QueueSource(Protocol):
    """The connection of one worker. Calls raise SourceError, and Ended (worker_store.py) if trying again cannot
    help.
    """

    @property
    def max_deliveries(self) -> int | None:
        """The number of deliveries after which the queue dead-letters a message by itself. None if unlimited."""

    @property
    def flushes(self) -> bool:
        """Whether each read must be settled before the next one."""

    def prepare(self) -> None:
        """Create or check what must exist before a message is taken."""

    def read(self, count: int, wait_ms: int) -> list[Message]:
        """Read at most `count` messages; wait up to `wait_ms` for the first."""

    def claim(self, idle_ms: int, count: int) -> list[Message]:
        """Return messages whose worker is gone, without fields until they are taken. Empty where `read` delivers
        them again.
        """

    def take(self, messages: list[Message]) -> list[Message]:
        """Deliver claimed messages; only this counts as a delivery."""

    def keep(self, messages: list[Message]) -> None:
        """Keep messages that are worked on from other workers, without a delivery. Called from another thread."""

    def release(self, messages: list[Message]) -> None:
        """Give messages back, so that the next worker has them at once."""

    def acknowledge(self, messages: list[Message]) -> int:
        """Acknowledge messages whose answers are durable."""

    def answer(self, answered: list[tuple[Message, bytes]]) -> int:
        """Write the answers beside the messages and acknowledge these at once. Called only if `answers` is not
        empty.
        """

    def bury(self, dead: list[tuple[Message, str]]) -> int:
        """Move messages to the dead letters with the reason, then acknowledge them."""

    def depth(self) -> tuple[int | None, int]:
        """Return how many messages wait (None if not known), and how many are taken and not settled."""

    def leave(self) -> None: ...


def environment_of(secret: str, names: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return environment variables from a Secret of the team: pairs of a variable and a key. Empty without a Secret."""
    if not secret:
        return []
    return [
        {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for variable, key in names
    ]


def secret_parameters(secret: str, names: Sequence[tuple[str, str]]) -> dict[str, Any] | None:
    """Return the parameters of a TriggerAuthentication from pairs of KEDA's parameter and a key. None without a
    Secret.
    """
    if not secret:
        return None
    return {
        "secretTargetRef": [
            {"parameter": parameter, "name": secret, "key": key} for parameter, key in names
        ]
    }
