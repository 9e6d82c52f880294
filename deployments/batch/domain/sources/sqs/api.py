"""A client of SQS (its JSON protocol) of the standard library: a part of the program of queue workers (program.py)."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from deployments.batch.domain.sources.message import SourceError
from deployments.batch.domain.sources.sqs.credentials import Credentials, signed
from deployments.batch.domain.worker_store import (
    ATTEMPTS,
    NEVER,
    ONCE_MORE,
    POLL_SECONDS,
    Ended,
    Json,
    pause,
)

SQS_SECONDS = 30
MISSING = ("QueueDoesNotExist", "NonExistentQueue", "QueueDeletedRecently")
ENDED_KEYS = ("ExpiredToken", "ExpiredTokenException", "RequestExpired")
NOT_ALLOWED = (
    *("AccessDenied", "AccessDeniedException", "AuthFailure", "InvalidClientTokenId"),
    *("SignatureDoesNotMatch", "InvalidSecurity", "UnrecognizedClientException"),
)
BUSY = ("RequestThrottled", "ThrottlingException", "Throttling", "ServiceUnavailable")


class SqsError(SourceError):
    """An error that SQS answers instead of a value. `kind` is its own name for it."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


class SqsApi:
    """A client with one connection for each thread. All calls here may be sent twice."""

    def __init__(self, endpoint: str, region: str) -> None:
        self.address, self.region = urlsplit(endpoint), region
        self.credentials, self.local = Credentials(region), threading.local()

    def call(self, action: str, **values: Any) -> Json:
        body, problem = json.dumps(values).encode(), ""
        for attempt in range(ATTEMPTS):
            try:
                status, content = self.send(action, body)
            except (OSError, http.client.HTTPException) as error:
                problem = f"{type(error).__name__}: {error}"
            else:
                if status == 200:
                    answer: Json = json.loads(content or b"{}")
                    return answer
                error_kind, detail = error_of_sqs(content)
                problem = f"{error_kind or f'HTTP {status}'}: {detail}"
                self.refuse(action, error_kind, problem, values)
                is_passing = status in ONCE_MORE or error_kind in (*BUSY, *ENDED_KEYS)
                if not is_passing:
                    raise SqsError(error_kind or f"HTTP {status}", detail)
            pause(min(2**attempt, 20) * POLL_SECONDS)
        raise Ended(1, f"the queue does not answer: {problem}")

    def refuse(self, action: str, kind: str, problem: str, values: Json) -> None:
        if kind in MISSING:
            raise Ended(NEVER, f"the queue {values.get('QueueUrl')} does not exist")
        if kind in NOT_ALLOWED:
            raise Ended(1, f"SQS refuses the worker sqs:{action}: {problem}")
        if kind in ENDED_KEYS:
            self.credentials.forget()

    def send(self, action: str, body: bytes) -> tuple[int, bytes]:
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"AmazonSQS.{action}",
        }
        keys, host = self.credentials.current(), self.address.netloc
        headers = signed(keys, self.region, "sqs", host, body, headers, time.time())
        connection = getattr(self.local, "connection", None)
        if connection is None:
            is_plain = self.address.scheme == "http"
            kind: Any = http.client.HTTPConnection if is_plain else http.client.HTTPSConnection
            connection = self.local.connection = kind(host, timeout=SQS_SECONDS)
        try:
            connection.request("POST", "/", body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except BaseException:
            connection.close()
            self.local.connection = None
            raise


def error_of_sqs(content: bytes) -> tuple[str, str]:
    """Return the name of an error, and its message."""
    try:
        answer = json.loads(content)
        kind = str(answer.get("__type", "")).rpartition("#")[2].rpartition(".")[2]
        return kind, str(answer.get("message") or answer.get("Message") or "")[:300]
    except (ValueError, AttributeError):
        return "", content[:300].decode(errors="replace")
