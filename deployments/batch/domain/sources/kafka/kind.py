"""A topic of Kafka: kafka://HOST:PORT[,HOST:PORT…]/TOPIC. Keys of the Secret are those of KEDA's trigger."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any, Final

from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.sources import interface
from deployments.batch.domain.sources.interface import MessageQueue
from deployments.batch.domain.sources.kafka import marks, topic
from deployments.batch.domain.sources.library import Library
from portal.core.definitions import Rejected

_GROUP: Final = "slipway"
_DEAD: Final = "-dead"
_NAME: Final = r"[-A-Za-z0-9._]{1,249}"
_SERVER: Final = r"[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?:[0-9]{1,5}"
_ADDRESS: Final = re.compile(
    rf"kafka://(?P<servers>{_SERVER}(,{_SERVER}){{0,9}})/(?P<topic>{_NAME})"
)
# Without its programs of its own.
_KAFKA: Final = Library(("kafka",), left_out=frozenset(["kafka/cli", "kafka/benchmarks"]))
_KEYS: Final = ("sasl", "username", "password", "tls")


class KafkaKind:
    """The interface QueueKind."""

    example: str = "kafka://kafka.vision.svc:9092/requests"
    schemes: tuple[str, ...] = ("kafka://",)
    modules: tuple[ModuleType, ...] = (marks, topic)
    source_class: str = topic.KafkaSource.__name__

    def library(self) -> Library | None:
        return _KAFKA

    def places_of(self, address: str) -> tuple[str, ...]:
        return tuple(f"{host}:{port}" for host, port in _servers_of(self._parse(address)))

    def check_output(self, output: str, source: str) -> None:
        raise _rejected(
            "output",
            "Answers to messages of Kafka go to a prefix of S3: what is read there was answered and committed once.",
        )

    def read(self, source: str, output: str, settings: BatchSettings) -> MessageQueue:
        found = self._parse(source)
        name, servers = found["topic"], _servers_of(found)
        group = settings.consumer_group or _GROUP
        dead_letters = settings.dead_letters or name + _DEAD
        if not re.fullmatch(_NAME, dead_letters):
            raise _rejected(
                "dead_letters",
                "Enter the name of a topic with at most 249 letters, digits, dots, dashes and underscores.",
            )
        if dead_letters == name:
            raise _rejected("dead_letters", f"{name} is the topic of messages. Use another.")
        plan = {
            "servers": [f"{host}:{port}" for host, port in servers],
            "topic": name,
            "group": group,
            "dead_letters": dead_letters,
            "tries": settings.tries,
            "answers": "",
            "library": _KAFKA.digest,
        }
        return MessageQueue(self, plan, tuple(servers), name, group, dead_letters)

    def triggers(self, queue: MessageQueue, settings: BatchSettings) -> list[dict[str, Any]]:
        """Return KEDA's trigger, which counts uncommitted messages, including those of a worker that is gone.

        KEDA starts at most one worker for each partition.
        """
        metadata = {
            "bootstrapServers": ",".join(queue.plan["servers"]),
            "consumerGroup": queue.group,
            "topic": queue.name,
            "lagThreshold": str(settings.messages_per_worker),
            "activationLagThreshold": "0",
            # A group that has committed nothing begins with the oldest message.
            "offsetResetPolicy": "earliest",
        }
        return [{"type": "kafka", "name": "messages", "metadata": metadata}]

    def authentication(self, settings: BatchSettings) -> dict[str, Any] | None:
        return interface.secret_parameters(settings.secret, [(key, key) for key in _KEYS])

    def environment(self, settings: BatchSettings) -> list[dict[str, Any]]:
        names = [(f"SLIPWAY_KAFKA_{key.upper()}", key) for key in _KEYS]
        return interface.environment_of(settings.secret, names)

    def _parse(self, text: str) -> re.Match[str]:
        match = _ADDRESS.fullmatch(text.strip())
        if match is None or not all(0 < port < 65536 for _, port in _servers_of(match)):
            raise _rejected(
                "input",
                f"Enter a topic of Kafka, for example {self.example}. User and password are in a Secret.",
            )
        return match


def _servers_of(found: re.Match[str]) -> list[tuple[str, int]]:
    pairs = (server.rpartition(":") for server in found["servers"].split(","))
    return [(host, int(port)) for host, _, port in pairs]


def _rejected(field: str, problem: str) -> Rejected:
    return Rejected(problem, {field: problem})
