"""Queues that a job drains: their addresses, and which of them a team may use.

A stream of Redis or Valkey: redis://HOST:PORT/STREAM, with TLS rediss://; a user of the server before an "@".
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.batch.domain.settings import MAX_FILE_HOURS, BatchSettings
from portal.core.definitions import Rejected

REDIS: Final = "redis"
EXAMPLE: Final = "redis://redis.vision.svc:6379/requests"
# Without a setting of the platform: Services of the team's own namespace.
OF_TEAM: Final = ("*.{team}.svc:*", "*.{team}.svc.cluster.local:*")
_DEFAULT_GROUP: Final = "slipway"
_DEAD: Final = ":dead"
_SCHEMES: Final = ("redis://", "rediss://")
_STREAM: Final = r"[A-Za-z0-9_.:{}-]{1,200}"
_ADDRESS: Final = re.compile(
    r"(?P<scheme>rediss?)://((?P<user>[A-Za-z0-9_.-]{1,64})@)?"
    r"(?P<host>[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?):(?P<port>[0-9]{1,5})/(?P<stream>"
    + _STREAM
    + r")"
)


@dataclass(frozen=True, slots=True)
class Queue:
    """`answers` is the stream of the same server that gets the answers; empty: they go to the object store."""

    host: str
    port: int
    is_encrypted: bool
    username: str
    stream: str
    group: str
    dead_letters: str
    answers: str

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def to_plan(self) -> dict[str, Any]:
        """As the program of the workers reads it."""
        return {
            "kind": REDIS,
            "host": self.host,
            "port": self.port,
            "tls": self.is_encrypted,
            "username": self.username,
            "stream": self.stream,
            "group": self.group,
            "answers": self.answers,
            "dead_letters": self.dead_letters,
        }


def is_queue(address: str) -> bool:
    return address.strip().startswith(_SCHEMES)


def parse_input(text: str, *, team: str, patterns: Sequence[str]) -> str:
    """The address of a stream that the team may read. Raises Rejected."""
    found = _parse(text, "input")
    address = f"{found['host']}:{found['port']}"
    allowed = [pattern.replace("{team}", team) for pattern in (*OF_TEAM, *patterns)]
    if not any(fnmatch.fnmatchcase(address, pattern) for pattern in allowed):
        raise _rejected(
            "input", f"{team} may not read queues at {address}. Allowed: {', '.join(allowed)}."
        )
    return text.strip()


def parse_output(text: str, *, source: str) -> str:
    """Another stream of the server of `source`. Raises Rejected."""
    found, of_source = _parse(text, "output"), _parse(source, "input")
    server = [found[name] for name in ("scheme", "user", "host", "port")]
    if server != [of_source[name] for name in ("scheme", "user", "host", "port")]:
        raise _rejected(
            "output",
            "Answers go to a stream of the same server, because they are written and messages acknowledged at once. "
            "Use another stream of it, or a prefix of S3.",
        )
    if found["stream"] == of_source["stream"]:
        raise _rejected("output", "Messages and answers need different streams.")
    return text.strip()


def check_settings(source: str, output: str, settings: BatchSettings) -> None:
    """Raises Rejected for settings that do not fit the kind of the input."""
    if not is_queue(source):
        for name in ("consumer_group", "dead_letters", "secret"):
            if getattr(settings, name):
                raise _rejected(name, "It is for jobs that drain a queue. Leave it empty.")
        if settings.hours > MAX_FILE_HOURS:
            raise _rejected("hours", f"Use 1 to {MAX_FILE_HOURS} hours for a job over files.")
        return
    if settings.queue:
        raise _rejected(
            "queue",
            "KEDA starts the workers of a job that drains a queue, and Kueue does not order them. Leave it empty.",
        )
    queue = read(source, output, settings)
    if queue.dead_letters in (queue.stream, queue.answers):
        raise _rejected(
            "dead_letters",
            f"{queue.dead_letters} is the stream of messages or answers. Use another.",
        )


def read(source: str, output: str, settings: BatchSettings) -> Queue:
    """Of stored addresses."""
    found = _parse(source, "input")
    return Queue(
        host=found["host"],
        port=int(found["port"]),
        is_encrypted=found["scheme"] == "rediss",
        username=found["user"] or "",
        stream=found["stream"],
        group=settings.consumer_group or _DEFAULT_GROUP,
        dead_letters=settings.dead_letters or found["stream"] + _DEAD,
        answers=_parse(output, "output")["stream"] if is_queue(output) else "",
    )


def _parse(text: str, field: str) -> re.Match[str]:
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or not 0 < int(found["port"]) < 65536:
        raise _rejected(
            field,
            f"Enter a stream of Redis or Valkey, for example {EXAMPLE}. The password is in a Secret.",
        )
    return found


def _rejected(field: str, problem: str) -> Rejected:
    return Rejected(problem, {field: problem})
