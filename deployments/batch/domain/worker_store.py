"""The client with which the programs of batch pods read and write objects: a part of them (program.py)."""

from __future__ import annotations

import http.client
import time
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]

EXPIRED, NEVER = 75, 78
POLL_SECONDS = 0.2
ATTEMPTS = 6
STORE_SECONDS = 120
DETAIL_LENGTH = 500
# Of a pod's termination message.
MESSAGE_BYTES = 4000
ONCE_MORE = (408, 429, 500, 502, 503, 504)

pause = time.sleep  # noqa: TID251  in the pod, where no worker of the portal waits for it


class WorkerEnded(Exception):
    """The worker ends with this exit code and detail."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail[:DETAIL_LENGTH]


class Store:
    """A store of objects that are read and written by presigned addresses."""

    def get(self, url: str, headers: Json | None = None) -> tuple[int, bytes]:
        return self.send("GET", url, b"", headers or {})

    def put(self, url: str, body: Any, size: int) -> bool:
        """Whether this call created the object. False if another attempt had written it."""
        headers = {"If-None-Match": "*", "Content-Length": str(size)}
        status, content = self.send("PUT", url, body, headers)
        if status == 412:
            return False
        if status != 200:
            raise refusal("write a part of the output", status, content)
        return True

    def send(self, method: str, url: str, body: Any, headers: Json) -> tuple[int, bytes]:
        address = urlsplit(url)
        is_plain = address.scheme == "http"
        kind: Any = http.client.HTTPConnection if is_plain else http.client.HTTPSConnection
        problem = ""
        for attempt in range(ATTEMPTS):
            connection = kind(address.netloc, timeout=STORE_SECONDS)
            try:
                if hasattr(body, "seek"):
                    body.seek(0)
                connection.request(method, f"{address.path}?{address.query}", body, headers)
                response = connection.getresponse()
                content = response.read()
                # 409: two attempts at one object at the same time.
                if response.status not in (*ONCE_MORE, 409):
                    return response.status, content
                problem = f"HTTP {response.status}"
            except (OSError, http.client.HTTPException) as error:
                problem = f"{type(error).__name__}: {error}"
            finally:
                connection.close()
            pause(min(2**attempt, 20) * POLL_SECONDS * 2)
        raise WorkerEnded(1, f"the object store did not answer: {problem}")


def refusal(what: str, status: int, content: bytes) -> WorkerEnded:
    text = content.decode(errors="replace")
    if status in (400, 403) and "xpired" in text:
        return WorkerEnded(EXPIRED, "the links to the store have expired")
    if status in (404, 412):
        return WorkerEnded(NEVER, f"could not {what}: it was changed or deleted (HTTP {status})")
    return WorkerEnded(1, f"could not {what}: HTTP {status} {text[:200]}")
