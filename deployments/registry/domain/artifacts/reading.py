"""Read the files of an artifact in ranges; in the sandbox through its parent."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Mapping
from typing import Any, Final, Protocol

# Of one request to the parent of the sandbox.
MAX_READ_BYTES: Final = 8 * 2**20
_LENGTH_BYTES: Final = 8
_BUFFER_BYTES: Final = 64 * 2**10
# For files that are read from begin to end.
STREAM_BUFFER_BYTES: Final = MAX_READ_BYTES


class Artifact(Protocol):
    """The files of a version. Reading behind the end of a file gives fewer bytes."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the files in bytes, by path."""

    def read(self, path: str, start: int, count: int) -> bytes:
        """Read a range of a file. Raises KeyError for a path that is not in `sizes`."""


class RememberingArtifact:
    """An artifact that reads the same range of another one only once. For a few small reads: all of them are
    kept.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.sizes = artifact.sizes
        self._artifact = artifact
        self._known: dict[tuple[str, int, int], bytes] = {}

    def read(self, path: str, start: int, count: int) -> bytes:
        span = (path, start, count)
        if span not in self._known:
            self._known[span] = self._artifact.read(path, start, count)
        return self._known[span]


class PipedArtifact:
    """An artifact as a task in the sandbox reads it: each read is a line of JSON to the parent, which answers
    with the bytes.

    The answer is 8 bytes of length (big-endian) and the bytes. A task that unpacks an archive sends
    lines as well, without an answer: {"begin": path}, {"write": count} and the bytes, {"end": true}.
    """

    def __init__(self, descriptor: int, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._socket = socket.socket(fileno=descriptor)
        self._answers = self._socket.makefile("rb")

    def read(self, path: str, start: int, count: int) -> bytes:
        size = self.sizes[path]
        chunks, end = [], min(start + count, size)
        while start < end:
            chunk = self._request(path, start, min(end - start, MAX_READ_BYTES))
            chunks.append(chunk)
            start += len(chunk)
        return b"".join(chunks)

    def begin_file(self, path: str) -> None:
        self._send({"begin": path})

    def write(self, chunk: bytes) -> None:
        """Write the next bytes of the file that was begun last. At most MAX_READ_BYTES."""
        self._send({"write": len(chunk)})
        self._socket.sendall(chunk)

    def end_files(self) -> None:
        self._send({"end": True})

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(f"{json.dumps(message)}\n".encode())

    def _request(self, path: str, start: int, count: int) -> bytes:
        self._send({"path": path, "start": start, "count": count})
        length = int.from_bytes(self._answers.read(_LENGTH_BYTES), "big")
        body = self._answers.read(length)
        if not body or len(body) != length:
            raise EOFError(f"{path}: the body ended early")
        return body


def frame_answer(body: bytes) -> bytes:
    """Return an answer as PipedArtifact reads it."""
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


class _Raw(io.RawIOBase):
    def __init__(self, artifact: Artifact, path: str) -> None:
        self._artifact, self._path, self._position = artifact, path, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._position}
        base = starts.get(whence, self._artifact.sizes[self._path])
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # of bytes
        body = self._artifact.read(self._path, self._position, len(buffer))
        buffer[: len(body)] = body
        self._position += len(body)
        return len(body)


def open_file(
    artifact: Artifact, path: str, *, buffer_bytes: int = _BUFFER_BYTES
) -> io.BufferedReader:
    """Return a seekable file for libraries such as zipfile. Raises KeyError for an unknown path."""
    if path not in artifact.sizes:
        raise KeyError(path)
    return io.BufferedReader(_Raw(artifact, path), buffer_bytes)
