"""A stream of Redis or Valkey: redis://HOST:PORT/STREAM, with TLS rediss://; a user of the server before an "@"."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any, Final

from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.sources import interface
from deployments.batch.domain.sources.interface import MessageQueue
from deployments.batch.domain.sources.library import Library
from deployments.batch.domain.sources.redis import resp, stream
from portal.core.definitions import Rejected

_GROUP: Final = "slipway"
_DEAD: Final = ":dead"
_PASSWORD: Final = "SLIPWAY_QUEUE_PASSWORD"  # noqa: S105  the name of a variable
_STREAM: Final = r"[A-Za-z0-9_.:{}-]{1,200}"
_ADDRESS: Final = re.compile(
    r"(?P<scheme>rediss?)://((?P<user>[A-Za-z0-9_.-]{1,64})@)?"
    r"(?P<host>[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?):(?P<port>[0-9]{1,5})/(?P<stream>"
    + _STREAM
    + r")"
)


class RedisKind:
    """The interface QueueKind."""

    example: str = "redis://redis.vision.svc:6379/requests"
    schemes: tuple[str, ...] = ("redis://", "rediss://")
    modules: tuple[ModuleType, ...] = (resp, stream)
    source_class: str = stream.RedisStream.__name__

    def library(self) -> Library | None:
        return None

    def places_of(self, address: str) -> tuple[str, ...]:
        parts = self._parse(address, "input")
        return (f"{parts['host']}:{parts['port']}",)

    def check_output(self, output: str, source: str) -> None:
        found, of_source = self._parse(output, "output"), self._parse(source, "input")
        server = [found[name] for name in ("scheme", "user", "host", "port")]
        if server != [of_source[name] for name in ("scheme", "user", "host", "port")]:
            raise _rejected(
                "output",
                "Answers go to a stream of the same server, because they are written and messages acknowledged at once. "
                "Use another stream of it, or a prefix of S3.",
            )
        if found["stream"] == of_source["stream"]:
            raise _rejected("output", "Messages and answers need different streams.")

    def read(self, source: str, output: str, settings: BatchSettings) -> MessageQueue:
        found = self._parse(source, "input")
        answers = self._parse(output, "output")["stream"] if output.startswith(self.schemes) else ""
        name, host, port = found["stream"], found["host"], int(found["port"])
        group = settings.consumer_group or _GROUP
        dead_letters = settings.dead_letters or name + _DEAD
        if dead_letters in (name, answers):
            raise _rejected(
                "dead_letters",
                f"{dead_letters} is the stream of messages or answers. Use another.",
            )
        plan = {
            "host": host,
            "port": port,
            "tls": found["scheme"] == "rediss",
            "username": found["user"] or "",
            "stream": name,
            "group": group,
            "answers": answers,
            "dead_letters": dead_letters,
        }
        return MessageQueue(self, plan, ((host, port),), name, group, dead_letters, answers)

    def triggers(self, queue: MessageQueue, settings: BatchSettings) -> list[dict[str, Any]]:
        """Return KEDA's triggers: one counts unread messages, one those read and not acknowledged, whose worker may
        be gone.
        """
        plan = queue.plan
        shared = {
            "address": f"{plan['host']}:{plan['port']}",
            "stream": queue.name,
            "consumerGroup": queue.group,
            "enableTLS": str(plan["tls"]).lower(),
            **({"username": plan["username"]} if plan["username"] else {}),
        }
        count = str(settings.messages_per_worker)
        return [
            {"type": "redis-streams", "name": name, "metadata": {**shared, field: count}}
            for name, field in (("unread", "lagCount"), ("pending", "pendingEntriesCount"))
        ]

    def authentication(self, settings: BatchSettings) -> dict[str, Any] | None:
        return interface.secret_parameters(settings.secret, [("password", "password")])

    def environment(self, settings: BatchSettings) -> list[dict[str, Any]]:
        return interface.environment_of(settings.secret, [(_PASSWORD, "password")])

    def _parse(self, text: str, field: str) -> re.Match[str]:
        match = _ADDRESS.fullmatch(text.strip())
        if match is None or not 0 < int(match["port"]) < 65536:
            raise _rejected(
                field,
                f"Enter a stream of Redis or Valkey, for example {self.example}. The password is in a Secret.",
            )
        return match


def _rejected(field: str, problem: str) -> Rejected:
    return Rejected(problem, {field: problem})
