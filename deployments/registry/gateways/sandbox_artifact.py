"""The parent's side of an artifact in the sandbox: it answers ranges, up to a limit, and takes what is
unpacked.
"""

from __future__ import annotations

import contextlib
import json
import socket
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, Self

from deployments.registry.domain.artifacts.reading import MAX_READ_BYTES, Artifact, frame_answer

# Of all answers to one task. Descriptions of models are small; weights are not read.
MAX_ANSWERED_BYTES: Final = 256 * 2**20
# After request, answer and errors.
CHILD_DESCRIPTOR: Final = 3
_MAX_LINE_BYTES: Final = 4096
_RECEIVED_BYTES: Final = 2**20
# A child that does not read its answer must not hold the worker.
_SEND_SECONDS: Final = 10


class Sink(Protocol):
    """A receiver of the files that a task unpacks. What it raises ends the task."""

    def begin(self, path: str) -> None: ...
    def write(self, chunk: bytes) -> None: ...
    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Access:
    """The access of a task: what it may read, how much of it, and where it may write."""

    artifact: Artifact
    most_bytes: int = MAX_ANSWERED_BYTES
    sink: Sink | None = None


class ArtifactServer:
    """The parent's side of a task's artifact. It serves nothing without access. A message that breaks the rules
    closes the connection, which the child's task sees as an end of file.
    """

    def __init__(self, access: Access | None) -> None:
        self._access = access
        self._ours: socket.socket | None = None
        self._theirs: socket.socket | None = None
        if access is not None:
            self._ours, self._theirs = socket.socketpair()
            self._ours.settimeout(_SEND_SECONDS)
        self._pending = b""
        self._answered = 0
        # Bytes of the current file that are still to come.
        self._expected = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close_passed()
        self._close()

    @property
    def passed(self) -> tuple[int, ...]:
        """The descriptor for the child, where it is number CHILD_DESCRIPTOR."""
        return () if self._theirs is None else (self._theirs.fileno(),)

    @property
    def watched(self) -> list[int]:
        return [] if self._ours is None else [self._ours.fileno()]

    @property
    def description(self) -> dict[str, Any] | None:
        if self._access is None or self._theirs is None:
            return None
        return {"descriptor": CHILD_DESCRIPTOR, "sizes": dict(self._access.artifact.sizes)}

    def close_passed(self) -> None:
        """Close the child's end. Call after the start of the child, which has its own copy."""
        if self._theirs is not None:
            self._theirs.close()
            self._theirs = None

    def answer(self) -> None:
        """Read what the child sent and answer it. Errors of the store and the sink pass through."""
        if self._ours is None or self._access is None:
            return
        received = self._ours.recv(_RECEIVED_BYTES)
        if not received:
            self._close()
            return
        self._pending += received
        while self._ours is not None and self._handle_next(self._access):
            pass

    def drain(self) -> None:
        """Handle what the child sent before it ended. A process that it left may hold its side open."""
        with contextlib.suppress(BlockingIOError):
            while self._ours is not None:
                self._ours.settimeout(0)
                self.answer()

    def _handle_next(self, access: Access) -> bool:
        """Whether a message, or a piece of a file, was complete and handled."""
        if self._expected and access.sink is not None:
            chunk, self._pending = self._pending[: self._expected], self._pending[self._expected :]
            self._expected -= len(chunk)
            access.sink.write(chunk)
            return bool(self._pending)
        line, is_complete, rest = self._pending.partition(b"\n")
        if not is_complete:
            if len(self._pending) > _MAX_LINE_BYTES:
                self._close()
            return False
        self._pending = rest
        if not self._handle(line, access):
            self._close()
        return True

    def _handle(self, line: bytes, access: Access) -> bool:
        """Handle one message. False for one that PipedArtifact does not send, or that is over the limit."""
        try:
            message = json.loads(line)
        except ValueError:
            return False
        match message:
            case {"path": str(path), "start": int(start), "count": int(count)}:
                return self._send_range(access, path, start, count)
            case {"begin": str(path)} if access.sink is not None:
                access.sink.begin(path)
            case {"write": int(count)} if access.sink is not None and 0 < count <= MAX_READ_BYTES:
                self._expected = count
            case {"end": True} if access.sink is not None:
                access.sink.end()
            case _:
                return False
        return True

    def _send_range(self, access: Access, path: str, start: int, count: int) -> bool:
        self._answered += count
        is_legal = path in access.artifact.sizes and start >= 0 and 0 < count <= MAX_READ_BYTES
        if not is_legal or self._answered > access.most_bytes or self._ours is None:
            return False
        try:
            self._ours.sendall(frame_answer(access.artifact.read(path, start, count)))
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            return False
        return True

    def _close(self) -> None:
        if self._ours is not None:
            self._ours.close()
            self._ours = None
