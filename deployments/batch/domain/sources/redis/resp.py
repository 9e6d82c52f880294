"""A client of Redis and Valkey (RESP2) of the standard library: a part of the program of queue workers (program.py)."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import Any

from deployments.batch.domain.sources.message import QueueError
from deployments.batch.domain.worker_store import ATTEMPTS, POLL_SECONDS, Json, WorkerEnded, pause

REDIS_SECONDS = 30
# Of a server that starts, or that another one replaces.
PASSING = ("LOADING", "MASTERDOWN", "READONLY", "TRYAGAIN", "CLUSTERDOWN")
REFUSED = ("NOAUTH", "WRONGPASS", "NOPERM")


class RedisError(QueueError):
    """An error that the server answers instead of a value. Its first word is the kind."""


class Redis:
    """A connection to Redis: one command at a time, also from several threads. All commands here may be sent twice."""

    def __init__(self, source: Json, password: str) -> None:
        self.source, self.password = source, password
        self.lock = threading.Lock()
        self.connection: Any = None
        self.file: Any = None

    def call(self, *words: Any) -> Any:
        (answer,) = self.calls([words])
        if isinstance(answer, RedisError):
            raise answer
        return answer

    def calls(self, commands: list[Any]) -> list[Any]:
        """Send commands together and return an answer for each, which may be a RedisError."""
        with self.lock:
            problem = ""
            for attempt in range(ATTEMPTS):
                try:
                    return self.send(commands)
                except (OSError, EOFError) as error:
                    problem = f"{type(error).__name__}: {error}"
                except RedisError as error:
                    problem = str(error)
                self.close()
                pause(min(2**attempt, 20) * POLL_SECONDS)
            raise WorkerEnded(1, f"the queue does not answer: {problem}")

    def send(self, commands: list[Any]) -> list[Any]:
        if self.file is None:
            self.connect()
        self.connection.sendall(b"".join(map(encode_command, commands)))
        answers = [self.read() for _ in commands]
        for answer in answers:
            if isinstance(answer, RedisError):
                if str(answer).startswith(REFUSED):
                    raise WorkerEnded(1, f"the queue refuses the worker: {answer}")
                if str(answer).startswith(PASSING):
                    raise answer
        return answers

    def connect(self) -> None:
        host, port = self.source["host"], self.source["port"]
        self.connection = socket.create_connection((host, port), timeout=REDIS_SECONDS)
        if self.source["tls"]:
            context = ssl.create_default_context()
            self.connection = context.wrap_socket(self.connection, server_hostname=host)
        self.file = self.connection.makefile("rb")
        if self.password:
            names = [self.source["username"]] if self.source["username"] else []
            self.send([["AUTH", *names, self.password]])

    def close(self) -> None:
        for item in (self.file, self.connection):
            if item is not None:
                with contextlib.suppress(OSError):
                    item.close()
        self.file = self.connection = None

    def read(self) -> Any:
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the connection was closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            return RedisError(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        size = int(rest)
        if size < 0:
            return None
        if kind == b"*":
            return [self.read() for _ in range(size)]
        content = self.file.read(size + 2)
        if len(content) != size + 2:
            raise EOFError("the connection was closed")
        return content[:-2]


def encode_command(words: Any) -> bytes:
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(p), p) for p in parts)
