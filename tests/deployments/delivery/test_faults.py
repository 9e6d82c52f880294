"""A cluster that misbehaves: a real proxy before a real API server. Each time the cluster ends up as
approved, and nothing else was written.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deployments.models import ChangeRequest, Deployment
from deployments.services import applying, changes, reconcile
from fleet.gateways.kube import HttpKubeClient
from fleet.gateways.kube_transport import Transport
from fleet.models import Cluster
from fleet.services import clients
from portal.core import leases
from tests.deployments.delivery.conftest import World
from tests.deployments.delivery.live import ISVC, ROUTE, Live, module_api
from tests.fleet.localcluster.conftest import LocalApi

__all__ = ["module_api"]


class _Handler(BaseHTTPRequestHandler):
    """Sends what comes on to the API server, unless the proxy shall misbehave."""

    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def do_GET(self) -> None:
        self._pass_on()

    def do_PATCH(self) -> None:
        self._pass_on()

    def do_DELETE(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size) if size else None
        if self.proxy.is_slow.is_set():
            self.proxy.is_over.wait(5)
            self.close_connection = True
        elif self.proxy.fault is not None:
            status, headers = self.proxy.fault
            self._answer(status, b'{"message": "no"}', headers)
        else:
            self._send(body)

    def _send(self, body: bytes | None) -> None:
        if self.command != "GET" and "dryRun" not in self.path:
            self.proxy.writes.append(f"{self.command} {self.path.split('?')[0]}")
        kinds = {"Content-Type": self.headers.get("Content-Type") or "application/json"}
        answer = self.proxy.client.request(self.command, self.path, content=body, headers=kinds)
        self._answer(answer.status_code, answer.content, {})

    def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        return


class Proxy:
    """`fault` is what is answered instead: status, headers. `writes` are those that went through."""

    def __init__(self, api: LocalApi) -> None:
        self.fault: tuple[int, dict[str, str]] | None = None
        self.is_slow, self.is_over = threading.Event(), threading.Event()
        self.writes: list[str] = []
        self.client = api.client()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.is_over.set()
        self.server.shutdown()
        self.server.server_close()
        self.client.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def proxy(module_api: LocalApi) -> Iterator[Proxy]:
    made = Proxy(module_api)
    yield made
    made.close()


@pytest.fixture
def live(
    world: World,
    module_api: LocalApi,
    proxy: Proxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Live]:
    path = tmp_path / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": proxy.url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    monkeypatch.setattr(clients, "factory", HttpKubeClient)
    clients.forget()
    Cluster.objects.filter(pk=world.cluster_id).update(kind="kubeconfig", kubeconfig_path=str(path))
    with module_api.client() as http:
        yield Live(world, http)
    clients.forget()


def approved(live: Live, name: str) -> Deployment:
    """Approved and begun; nothing is on the cluster yet."""
    change = changes.request_deploy(actor=live.world.member, draft=live.world.draft(name))
    changes.approve(actor=live.world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    assert applying.apply_change(change_id=change.pk) == change.deployment_id
    return Deployment.objects.get(pk=change.deployment_id)


def is_there(live: Live, name: str) -> bool:
    return live.get(f"{ISVC}/{name}-r1") is not None and live.get(f"{ROUTE}/{name}") is not None


def test_ten_minutes_without_an_api_server_then_all_is_as_approved(
    live: Live, proxy: Proxy
) -> None:
    deployment = approved(live, "away")
    proxy.fault = (503, {})
    looks = 0
    for _ in range(60):
        live.world.clock.move(10)
        looks += reconcile.sweep()
    deployment.refresh_from_db()
    assert "does not answer" in deployment.state_reason
    assert looks < 25, "it backs off"
    assert proxy.writes == []

    proxy.fault = None
    live.world.clock.move(61)
    reconcile.sweep()

    deployment.refresh_from_db()
    assert is_there(live, "away")
    assert "does not answer" not in deployment.state_reason
    assert ChangeRequest.objects.get().state == "applying"


def test_a_throttling_server_is_left_alone_as_long_as_it_asks(live: Live, proxy: Proxy) -> None:
    deployment = approved(live, "throttled")
    proxy.fault = (429, {"Retry-After": "120"})
    reconcile.sweep()
    proxy.fault = None

    live.world.clock.move(119)
    assert reconcile.sweep() == 0
    assert proxy.writes == []
    live.world.clock.move(2)
    reconcile.sweep()

    deployment.refresh_from_db()
    assert is_there(live, "throttled")


@pytest.mark.parametrize("status", [500, 502, 401])
def test_errors_and_an_expired_token_heal_by_themselves(
    live: Live, proxy: Proxy, status: int
) -> None:
    deployment = approved(live, f"broken-{status}")
    proxy.fault = (status, {})
    reconcile.sweep()
    assert proxy.writes == []

    proxy.fault = None
    live.world.clock.move(61)
    reconcile.sweep()

    assert is_there(live, deployment.name)


def test_a_server_that_answers_too_slowly_is_given_up_and_asked_again(
    live: Live, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = approved(live, "slow")
    monkeypatch.setattr(Transport.request, "__kwdefaults__", _short_timeouts())
    proxy.is_slow.set()
    reconcile.sweep()
    deployment.refresh_from_db()
    assert "does not answer" in deployment.state_reason

    proxy.is_slow.clear()
    live.world.clock.move(61)
    reconcile.sweep()

    assert is_there(live, "slow")


def _short_timeouts() -> dict[str, object]:
    return {**(Transport.request.__kwdefaults__ or {}), "read_seconds": 0.3}


def test_a_worker_killed_between_apply_and_record_costs_one_lease(
    live: Live, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = approved(live, "killed")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("deployments.services.recording.record", die)
        with pytest.raises(KeyboardInterrupt):
            reconcile.reconcile(deployment_id=deployment.pk)
    assert is_there(live, "killed")
    before = len(proxy.writes)

    live.world.clock.move(91)
    reconcile.sweep()

    deployment.refresh_from_db()
    assert deployment.observed_generation == deployment.desired_generation
    assert len(proxy.writes) == before, "what was written is found, not written again"


def test_one_object_that_always_fails_does_not_hold_up_the_others(
    live: Live, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fleet.domain.cluster_errors import Unreachable

    bad, good = approved(live, "webhook-down"), approved(live, "fine")
    apply = HttpKubeClient.apply

    def fails_for_one(self, manifest, **options):
        if manifest["metadata"]["name"] == "webhook-down-r1":
            raise Unreachable("failed calling webhook")
        return apply(self, manifest, **options)

    monkeypatch.setattr(HttpKubeClient, "apply", fails_for_one)
    reconcile.sweep()

    bad.refresh_from_db()
    assert is_there(live, good.name)
    assert not is_there(live, bad.name)
    assert "failed calling webhook" in bad.state_reason


def test_another_field_manager_is_overruled_once_what_it_holds_is_the_portals(live: Live) -> None:
    deployment = approved(live, "contested")
    reconcile.sweep()
    live.edit(f"{ISVC}/contested-r1", {"spec": {"predictor": {"maxReplicas": 9}}}, manager="argo")

    live.look(deployment)

    found = live.get(f"{ISVC}/contested-r1")
    assert found is not None
    assert found["spec"]["predictor"]["maxReplicas"] == 1


def test_without_a_broker_the_sweeps_deliver_alone(live: Live) -> None:
    change = changes.request_deploy(actor=live.world.member, draft=live.world.draft("flushed"))
    changes.approve(actor=live.world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    applying.sweep()
    reconcile.sweep()

    assert is_there(live, "flushed")


def test_nothing_is_written_by_a_worker_whose_lease_was_lost(live: Live, proxy: Proxy) -> None:
    deployment = approved(live, "fenced")
    held = leases.claim(Deployment, deployment.pk, seconds=60)
    assert held is not None

    assert reconcile.reconcile(deployment_id=deployment.pk)

    assert proxy.writes == []
