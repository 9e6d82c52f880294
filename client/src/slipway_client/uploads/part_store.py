"""PUT one part to its signed URL. The object store gets no token of the portal."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import httpx

from slipway_client.connection import RetryPolicy
from slipway_client.errors import ConnectionFailed, Failed
from slipway_client.uploads.local_files import LocalFile

_CODE = re.compile(r"<Code>(\w+)</Code>")
_GONE = frozenset({"NoSuchUpload", "NoSuchBucket", "NoSuchKey"})


class Stopped(Exception):
    """The upload ends: Ctrl-C, or another part failed for good."""


class UrlRefused(Exception):
    """The URL has expired, as after a night of sleep. A new one is to be signed."""


class UploadGone(Exception):
    """The object store has dropped the file's upload: all its parts are to be sent again."""


@dataclass(frozen=True, slots=True)
class Part:
    """A range of a file; `checksum` is its SHA-256 in base64."""

    file: LocalFile
    number: int
    start: int
    size_bytes: int
    checksum: str = ""


@dataclass
class PartStore:
    """Used by several threads at once."""

    retry: RetryPolicy
    on_bytes: Callable[[int], None]
    transport: httpx.BaseTransport | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        timeout = httpx.Timeout(60.0, read=300.0)
        self._http = httpx.Client(timeout=timeout, transport=self.transport)

    def close(self) -> None:
        self._http.close()

    def put(self, part: Part, url: str, headers: Mapping[str, str]) -> None:
        """Raises UrlRefused, UploadGone, Stopped, FileChanged, Failed and ConnectionFailed."""
        for attempt in range(1, self.retry.attempts + 1):
            try:
                answer = self._attempt(part, url, headers)
            except httpx.TransportError as error:
                problem = f"{type(error).__name__} {error}".strip()
            else:
                if answer.is_success:
                    return
                problem = _problem(answer)
            if attempt < self.retry.attempts and self.stop.wait(
                self.retry.pause_before(attempt + 1)
            ):
                raise Stopped
        raise ConnectionFailed(
            f"The object store did not take part {part.number} of {part.file.path} after "
            f"{self.retry.attempts} attempts: {problem}. Push again to resume."
        )

    def _attempt(self, part: Part, url: str, headers: Mapping[str, str]) -> httpx.Response:
        sent = 0

        def body() -> Iterator[bytes]:
            nonlocal sent
            for chunk in part.file.chunks(part.start, part.size_bytes):
                if self.stop.is_set():
                    raise Stopped
                yield chunk
                sent += len(chunk)
                self.on_bytes(len(chunk))

        is_stored = False
        try:
            all_headers = {**headers, "Content-Length": str(part.size_bytes)}
            answer = self._http.put(url, content=body(), headers=all_headers)
            is_stored = answer.is_success
            return answer
        finally:
            if not is_stored:
                self.on_bytes(-sent)


def _problem(answer: httpx.Response) -> str:
    """Return what went wrong, if another attempt can help. Raises UrlRefused, UploadGone or Failed otherwise."""
    match = _CODE.search(answer.text)
    code = match[1] if match else ""
    if answer.status_code == httpx.codes.FORBIDDEN:
        raise UrlRefused
    if answer.status_code == httpx.codes.NOT_FOUND or code in _GONE:
        raise UploadGone
    is_healing = answer.status_code >= 500 or answer.status_code in (408, 429)
    is_damaged = code in ("BadDigest", "InvalidDigest", "IncompleteBody", "RequestTimeout")
    if not (is_healing or is_damaged):
        raise Failed(f"The object store refused a part: {answer.status_code} {code or answer.text}")
    return f"{answer.status_code} {code}".strip()
