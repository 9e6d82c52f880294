"""The API server that a kubeconfig names, with a namespace for the rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from slipway_localcluster.client import kubeconfig
from tests.fidelity.change import Change, clean_up_of, requests_of
from tests.fidelity.row import Row
from tests.fidelity.sending import request_of, verdict_of

_SECONDS = 30


@dataclass(frozen=True, slots=True)
class RealServer:
    client: httpx.Client
    namespace: str

    def send(self, row: Row) -> dict[str, Any]:
        return verdict_of(self.client.request(**request_of(row, self.namespace)))

    def change(self, change: Change) -> dict[str, Any]:
        before, judged = requests_of(change, self.namespace)
        try:
            for request in before:
                self.client.request(**request).raise_for_status()
            return verdict_of(self.client.request(**judged))
        finally:
            for request in clean_up_of(change, self.namespace):
                self.client.request(**request)

    def serves(self, row: Row | Change) -> bool:
        path = row.collection.format(namespace=self.namespace)
        return self.client.get(path, params={"limit": 1}).status_code != 404


@contextmanager
def connected(path: Path) -> Iterator[RealServer]:
    """As an administrator. The namespace is removed."""
    connection = kubeconfig.read(path)
    namespace = f"slipway-fidelity-{os.getpid()}"
    with httpx.Client(
        base_url=connection.server, verify=connection.tls, timeout=_SECONDS
    ) as client:
        made = client.post("/api/v1/namespaces", json=_namespace(namespace))
        made.raise_for_status()
        try:
            yield RealServer(client, namespace)
        finally:
            client.delete(f"/api/v1/namespaces/{namespace}")


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
