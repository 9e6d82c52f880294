"""HTTP to the portal: the token, timeouts, retries, problem documents.

Every POST carries an Idempotency-Key, so the portal answers a repeated one with its first response:
all requests can be retried. Retried is what can heal: no connection, no answer in time, 429, 502,
503 and 504.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import httpx

from slipway_client.errors import ApiError, ConnectionFailed, UnexpectedAnswer, build_error

_HEALING: Final = frozenset({429, 502, 503, 504})
_LONGEST_PAUSE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A policy for repeating requests: `attempts` in all; pauses double from `first_pause_seconds` on, with jitter."""

    attempts: int = 5
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 8.0

    def pause_before(self, attempt: int) -> float:
        """Return the pause in seconds before attempt 2, 3, …: at random up to the doubled pause, so that clients
        spread out.
        """
        pause = self.first_pause_seconds * float(2 ** (attempt - 2))
        return random.uniform(0.5, 1.0) * min(pause, self.longest_pause_seconds)  # noqa: S311  not for secrets


class Connection:
    """One portal and one token. Use it from one thread at a time."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 30.0,
        retry: RetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url.rstrip("/")
        self.retry = retry or RetryPolicy()
        self.sleep = sleep
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1/",
            headers={"Authorization": f"Bearer {token}", "User-Agent": "slipway-client"},
            timeout=timeout,
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    @contextmanager
    def with_retry(self, retry: RetryPolicy) -> Iterator[None]:
        """Use another retry policy within the block, as for an upload of hours."""
        before, self.retry = self.retry, retry
        try:
            yield
        finally:
            self.retry = before

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        kept = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        return self._send("GET", path, query=kept)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self._send("POST", path, body=body or {}, key=uuid.uuid4().hex)

    def put(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._send("PUT", path, body=body)

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def pages(self, path: str, query: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """Yield every row of a paginated list, page by page."""
        for page in self.answers(path, query):
            yield from page["results"]

    def answers(self, path: str, query: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """Yield every page of a paginated list."""
        page = self.get(path, query)
        while True:
            yield page
            if not page["next"]:
                return
            # Only its query: the token must not follow a link to another host.
            page = self.get(path, dict(parse_qsl(urlsplit(str(page["next"])).query)))

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """Stream one GET whose body is read line by line; the caller reconnects. Raises httpx's errors."""
        with self._http.stream("GET", path, headers=dict(headers)) as answer:
            yield answer

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        request = self._http.build_request(
            method, path, params=dict(query) if query else None, json=body, headers=headers
        )
        return read(self._send_with_retries(request), url=self.url)

    def _send_with_retries(self, request: httpx.Request) -> httpx.Response:
        for attempt in range(1, self.retry.attempts + 1):
            is_last = attempt == self.retry.attempts
            pause = self.retry.pause_before(attempt + 1)
            try:
                answer = self._http.send(request)
            except httpx.TransportError as error:
                if is_last:
                    raise ConnectionFailed(self._describe(error)) from error
            else:
                if is_last or not (answer.status_code in _HEALING or _is_still_running(answer)):
                    return answer
                pause = max(pause, _retry_after(answer))
            self.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _describe(self, error: httpx.TransportError) -> str:
        what = "did not answer in time" if isinstance(error, httpx.TimeoutException) else str(error)
        return (
            f"{self.url}: {what or type(error).__name__} ({self.retry.attempts} attempts). "
            "Check the address and your network; the request can be repeated."
        )


def read(answer: httpx.Response, *, url: str) -> Any:
    """Return the body as JSON. Raises `ApiError` for a refusal."""
    if answer.status_code == httpx.codes.NO_CONTENT:
        return None
    try:
        body = answer.json()
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UnexpectedAnswer(
            f"{url} answered {answer.status_code} {_redirect(answer)}without JSON: is it the "
            "address of a Slipway portal?"
        ) from error
    if answer.is_success:
        return body
    raise build_error(answer.status_code, body if isinstance(body, dict) else {})


def _redirect(answer: httpx.Response) -> str:
    place = answer.headers.get("Location", "")
    return f"(to {place}) " if place else ""


def _is_still_running(answer: httpx.Response) -> bool:
    """Return whether the portal still handles the first attempt, which timed out here."""
    if answer.status_code != httpx.codes.CONFLICT:
        return False
    try:
        read(answer, url="")
    except ApiError as error:
        return error.code == "conflict" and "Idempotency-Key is still running" in error.detail
    return False


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    return min(float(text), _LONGEST_PAUSE_SECONDS) if text.isdecimal() else 0.0
