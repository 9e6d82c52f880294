"""A candidate that hangs on some of its requests, behind a real Envoy: its own server counts only what it
answers, the gateway counts the rest, and the rollout is aborted.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx

from deployments.changes.services import requests
from deployments.models import Deployment, Rollout
from deployments.rollouts.services import prometheus_readings
from deployments.states import RolloutPhase
from fleet.kube.domain.pod_proxy import PodRequest, PodResponse
from slipway_localcluster import envoy
from slipway_localcluster.controllers import envoy_stats, free_ports
from slipway_localcluster.controllers.envoy_config import Backend, Endpoint, Route
from slipway_localcluster.controllers.envoy_files import EnvoyFiles
from tests import plain_http
from tests.deployments.canaries import send, view
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE

CLUSTERS = ("vision_detector-r1-predictor_80", "vision_detector-r2-predictor_80")
STEPS = [{"weight": 5, "soak_seconds": 0, "min_requests": 20}]
# Of each server, between readings.
TO_STABLE, TO_CANDIDATE = 190, 40


class Server(ThreadingHTTPServer):
    """Answers, but never every `hangs_each`-th request."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, hangs_each: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hangs_each = hangs_each
        self.numbers = itertools.count(1)
        self.ended = Event()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.hangs_each and next(self.server.numbers) % self.server.hangs_each == 0:
            self.server.ended.wait()
            return
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@dataclass
class Gateway:
    """A real Envoy with one path to each revision, and the port of its metrics."""

    url: str
    stats_port: int
    pages: list[str] = field(default_factory=list)

    def call(self, path: str, times: int) -> list[int]:
        """The statuses that callers get. They wait longer than the gateway does."""
        with httpx.Client(timeout=30) as client, ThreadPoolExecutor(8) as pool:
            send = lambda _: client.post(f"{self.url}/{path}", content=b"x").status_code  # noqa: E731
            return list(pool.map(send, range(times)))

    def answer(self, request: PodRequest) -> PodResponse:
        """As an API server passes a request on to the port of the proxy's pod."""
        assert (request.namespace, request.pod, request.port) == ("slipway-gateway", "proxy", 19001)
        response = plain_http.client.get(f"http://127.0.0.1:{self.stats_port}/{request.path}")
        self.pages.append(response.text)
        return PodResponse(response.status_code, response.content)


@contextmanager
def _gateway(folder: Path, *servers: Server) -> Iterator[Gateway]:
    port = free_ports.take_one()
    files = EnvoyFiles(folder / "envoy", port)
    routes = [
        Route(f"/{number}", False, (), None, "1s", (Backend(cluster, 1),))
        for number, cluster in enumerate(CLUSTERS, start=1)
    ]
    endpoints = {
        cluster: [Endpoint("127.0.0.1", server.server_port)]
        for cluster, server in zip(CLUSTERS, servers, strict=True)
    }
    files.update(routes, endpoints)
    process = subprocess.Popen(envoy.command(folder), stderr=subprocess.DEVNULL)
    for server in servers:
        Thread(target=server.serve_forever, daemon=True).start()
    try:
        made = Gateway(f"http://127.0.0.1:{port}", files.stats_port)
        _wait(made)
        yield made
    finally:
        process.kill()
        process.wait()
        for server in servers:
            server.ended.set()
            server.shutdown()
            server.server_close()


def _wait(gateway: Gateway) -> None:
    """Until Envoy listens and has both routes."""
    transport = httpx.HTTPTransport(retries=10)
    with httpx.Client(transport=transport, timeout=30) as client:
        for path in ("1", "2"):
            assert any(client.post(f"{gateway.url}/{path}").status_code == 200 for _ in range(200))


def _put_proxy(world: World) -> None:
    world.cluster.objects["Pod", "slipway-gateway", "proxy"] = {
        "kind": "Pod",
        "metadata": {
            "name": "proxy",
            "namespace": "slipway-gateway",
            "labels": {"gateway.networking.k8s.io/gateway-name": "slipway"},
            "annotations": {
                "prometheus.io/port": "19001",
                "prometheus.io/path": envoy_stats.PATH,
            },
        },
        "status": {"phase": "Running"},
    }


def _start(world: World) -> tuple[Deployment, Rollout]:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan=AT_ONCE,
    )
    world.approved(change)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    return world.reconcile_now(deployment), Rollout.objects.get()


def _line(world: World, rollout: Rollout, name: str = "Lost requests") -> Any:
    return next(guard for guard in view(world, rollout).guards if guard.guard == name)


def _read(world: World, deployment: Deployment, *, answered: int) -> None:
    """Both servers count what they answered; that is all that they can."""
    world.clock.move(10)
    send(world, "detector-r1", TO_STABLE)
    send(world, "detector-r2", answered)
    assert prometheus_readings.sweep() == 1
    world.reconcile_now(deployment)


def test_a_candidate_that_hangs_on_half_of_its_requests_is_aborted_by_the_fast_lane(
    world: World, tmp_path: Path
) -> None:
    deployment, rollout = _start(world)
    _put_proxy(world)
    with _gateway(tmp_path, Server(), Server(hangs_each=2)) as gateway:
        world.cluster.pods = gateway.answer
        _read(world, deployment, answered=0)
        for _ in range(6):
            assert set(gateway.call("1", TO_STABLE)) == {200}
            statuses = gateway.call("2", TO_CANDIDATE)
            assert set(statuses) == {200, 504}
            _read(world, deployment, answered=statuses.count(200))
            rollout.refresh_from_db()
            if rollout.phase != RolloutPhase.RUNNING:
                break

    assert rollout.phase == RolloutPhase.ABORTING
    reason = rollout.events.get(kind="aborting").message
    assert reason.startswith("aborted: lost requests: worse than allowed: ")
    assert "requests never came back" in reason
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    # The portal reads metrics, and of them only what it needs.
    assert all("envoy_cluster_upstream_rq_total" in page for page in gateway.pages)
    assert not any("upstream_cx_length_ms" in page for page in gateway.pages)


def test_a_candidate_that_answers_everything_passes(world: World, tmp_path: Path) -> None:
    deployment, rollout = _start(world)
    _put_proxy(world)
    with _gateway(tmp_path, Server(), Server()) as gateway:
        world.cluster.pods = gateway.answer
        _read(world, deployment, answered=10)
        for _ in range(2):
            assert set(gateway.call("1", TO_STABLE) + gateway.call("2", 10)) == {200}
            _read(world, deployment, answered=10)

    line = _line(world, rollout)
    assert (line.verdict, line.message) == (
        "pass",
        "0 of 20 requests never came back; too few to judge yet",
    )
    assert line.n == 20
    assert (line.stable, line.candidate) == ("0.00%", "0.00%")


def test_without_a_counting_gateway_the_line_says_so(world: World) -> None:
    deployment, rollout = _start(world)

    for _ in range(3):
        _read(world, deployment, answered=10)

    line = _line(world, rollout)
    assert (line.verdict, line.message) == (
        "not known",
        "requests that never return are not counted here: no proxy of Gateway "
        "slipway-gateway/slipway states a port for its metrics",
    )
    assert view(world, rollout).is_promotable
