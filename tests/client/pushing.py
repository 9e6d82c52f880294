"""What the tests of uploads with the client share: the way to the store, progress, a model of three parts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from deployments.models import ModelVersion
from deployments.registry.gateways.object_store import S3Store
from portal.accounts import tokens
from slipway_client import (
    Client,
)
from tests.client.conftest import AT_ONCE, PORTAL, portal_transport
from tests.deployments import onnx_models
from tests.deployments.uploading import People

PART = 8 * 2**20
Answer = Callable[[httpx.Request, int], httpx.Response | None]


class Store(httpx.BaseTransport):
    """The way to the real S3 server: counts, and lets `before` fail a request by its number."""

    def __init__(self, before: Answer = lambda request, number: None) -> None:
        self.sent: list[str] = []
        self.most_at_once = 0
        self._before = before
        self._at_once = 0
        self._lock = threading.Lock()
        self._network = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            self.sent.append(request.url.path)
            number = len(self.sent)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return self._before(request, number) or self._network.handle_request(request)
        finally:
            with self._lock:
                self._at_once -= 1


class Recorded:
    """Progress as numbers."""

    def __init__(self) -> None:
        self.bytes = {"digest": 0, "send": 0}
        self.totals: dict[str, int] = {}
        self.notes: list[str] = []
        self._lock = threading.Lock()

    def begin(self, stage: str, total_bytes: int) -> None:
        self.totals[stage], self.bytes[stage] = total_bytes, 0

    def advance(self, stage: str, count: int) -> None:
        with self._lock:
            self.bytes[stage] += count

    def note(self, line: str) -> None:
        self.notes.append(line)

    def verifying(self, version: Any) -> None:
        self.notes.append(version.state)


def client_with(people: People, store: httpx.BaseTransport, **options: Any) -> Client:
    token = tokens.create(actor=people.member, name="push", scopes=["upload"]).plain
    return Client(
        PORTAL,
        token,
        transport=portal_transport(),
        store_transport=store,
        retry=AT_ONCE,
        **options,
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A real ONNX file of three parts."""
    path = tmp_path / "detector.onnx"
    path.write_bytes(onnx_models.large(megabytes=20))
    return path


def stored_bytes(store: S3Store, version: ModelVersion, path: str) -> bytes:
    key = version.files.get(path=path).key
    body: bytes = store.client.get_object(Bucket=store.bucket, Key=key)["Body"].read()
    return body
