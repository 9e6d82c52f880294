"""A connection that dies without a word, as behind a gateway that forgot it: nothing is closed, and
nothing comes any more.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fleet.kube.gateways import client
from fleet.kube.gateways.client import HttpKubeClient
from fleet.kube.gateways.transport import Transport
from fleet.kube.services import clients
from fleet.models import Cluster, Node
from fleet.observation.services.watch import ClusterWatch
from portal.core import clock
from tests.fleet import objects
from tests.fleet.observation.test_watching import create, unique, within
from tests.localcluster.conftest import LocalApi

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        os.environ.get("SLIPWAY_TEST_SQLITE") == "1",
        reason="SQLite's test database is in memory, where threads lock each other out",
    ),
]


class Wire:
    """Passes bytes on between the portal and an API server. After `go_silent`, what is connected
    stays so and hears nothing more; new connections work.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", parts.port or 443)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._dead: set[socket.socket] = set()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._listener.getsockname()[1]}"

    def go_silent(self) -> int:
        """Returns how many connections heard their last."""
        self._dead |= self._open
        return len(self._dead) // 2

    def close(self) -> None:
        self._listener.close()
        for item in list(self._open):
            item.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._open |= {near, far}
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if source not in self._dead:
                    sink.sendall(data)
            if source not in self._dead:
                sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def wire(live_api: LocalApi) -> Iterator[Wire]:
    made = Wire(live_api.base_url)
    yield made
    made.close()


@pytest.fixture
def cluster(live_api: LocalApi, wire: Wire, tmp_path: Path) -> Iterator[Cluster]:
    path = tmp_path / "kubeconfig"
    path.write_text(live_api.kubeconfig.read_text().replace(live_api.base_url, wire.url))
    clients.forget()
    yield Cluster.objects.create(
        name="unresponsive",
        kind="local",
        kubeconfig_path=str(path),
        gateway_url="http://127.0.0.1:1",
        created_at=clock.now(),
    )
    clients.forget()


def test_a_watch_that_drops_silently_is_begun_anew_and_misses_nothing(
    cluster: Cluster, wire: Wire, live_api: LocalApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In seconds what takes a minute otherwise.
    monkeypatch.setattr(client, "_WATCH_GRACE_SECONDS", 1)
    monkeypatch.setattr(HttpKubeClient.watch, "__kwdefaults__", {"labels": None, "seconds": 2})
    short = {**(Transport.request.__kwdefaults__ or {}), "read_seconds": 2.0}
    monkeypatch.setattr(Transport.request, "__kwdefaults__", short)
    watch = ClusterWatch(cluster.pk)
    watch.start()
    within(20, lambda: Cluster.objects.get().watch_seen_at is not None)
    name = unique("node")

    assert wire.go_silent() >= 2, "streams of pods and nodes at least"
    with live_api.client() as api:
        create(api, objects.node(name))
    try:
        within(30, lambda: Node.objects.filter(name=name, is_ready=True).exists())
    finally:
        watch.stop()
        watch.join(5)
