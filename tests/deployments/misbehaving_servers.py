"""What stands between the portal and a real API server in the tests of faults."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.lifecycle.services import apply_changes
from deployments.manifests.domain import resource_limits
from deployments.manifests.selectors import rendered
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import ChangeRequest, Deployment
from deployments.states import ChangeState
from fleet.kube.domain import ownership
from fleet.kube.gateways.client import HttpKubeClient
from fleet.kube.services import clients
from fleet.models import Cluster
from tests.deployments.live_cluster import ISVC, ROUTE, Live
from tests.deployments.world import World
from tests.installations import use_same_installation
from tests.localcluster.conftest import LocalApi


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
        body = self.rfile.read(size) if size else b""
        if self.proxy.is_slow.is_set():
            self.proxy.is_over.wait(5)
            self.close_connection = True
        elif self.proxy.fault is not None:
            status, headers = self.proxy.fault
            self._answer(status, b'{"message": "no"}', headers)
        else:
            self._send(body)

    def _send(self, body: bytes) -> None:
        if self.command != "GET" and "dryRun" not in self.path:
            path = self.path.split("?")[0]
            self.proxy.writes.append(Write(self.command, path, json.loads(body or "{}")))
        names = ("Content-Type", "Authorization")
        headers = {name: self.headers[name] for name in names if name in self.headers}
        answer = self.proxy.client.request(self.command, self.path, content=body, headers=headers)
        self._answer(answer.status_code, answer.content, {})

    def _answer(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        return


@dataclass(frozen=True, slots=True)
class Write:
    method: str
    path: str
    body: Mapping[str, Any]


class Proxy:
    """`fault` is what is answered instead: status, headers. `writes` are those that went through."""

    def __init__(self, api: LocalApi) -> None:
        self.api = api
        self.fault: tuple[int, dict[str, str]] | None = None
        self.is_slow, self.is_over = threading.Event(), threading.Event()
        self.writes: list[Write] = []
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

    def applied(self, plural: str) -> int:
        """How often an object of this kind was written."""
        return sum(f"/{plural}/" in write.path for write in self.writes if write.method == "PATCH")


@pytest.fixture
def proxy(module_api: LocalApi) -> Iterator[Proxy]:
    made = Proxy(module_api)
    yield made
    made.close()


def write_kubeconfig(path: Path, *, server: str, token: str) -> None:
    path.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": {"token": token}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )


@pytest.fixture
def kubeconfig(tmp_path: Path, proxy: Proxy) -> Path:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, server=proxy.url, token=proxy.api.token)
    return path


@pytest.fixture
def live(
    world: World, module_api: LocalApi, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Live]:
    """All requests of the portal to the cluster go through the proxy."""
    monkeypatch.setattr(clients, "factory", HttpKubeClient)
    clients.forget()
    use_same_installation()
    Cluster.objects.filter(pk=world.cluster_id).update(
        kind="kubeconfig", kubeconfig_path=str(kubeconfig)
    )
    with module_api.client() as http:
        yield Live(world, http)
    clients.forget()


def approved(live: Live, name: str) -> Deployment:
    """Approved and begun; nothing is on the cluster yet."""
    change = requests.request_deploy(actor=live.world.member, draft=live.world.draft(name))
    decisions.approve(
        actor=live.world.lead, change_id=change.pk, evidence_hash=change.evidence_hash
    )
    assert apply_changes.apply_change(change_id=change.pk) == change.deployment_id
    return Deployment.objects.get(pk=deployment_of(change).pk)


def is_there(live: Live, name: str) -> bool:
    return live.get(f"{ISVC}/{name}-r1") is not None and live.get(f"{ROUTE}/{name}") is not None


def assert_only_approved(proxy: Proxy) -> None:
    """Whatever went through is, field by field, what an approved request is made of, or the limits
    of the team's quota.
    """
    begun = ChangeRequest.objects.filter(state__in=(ChangeState.APPLYING, ChangeState.DONE))
    allowed: list[Mapping[str, Any]] = []
    for change in begun:
        assert change.revision is not None
        deployment = deployment_of(change)
        whole = RenderedDeployment(deployment)
        allowed += [*rendered.render_revision(change.revision).manifests, whole.route]
        quota = deployment.team.quota_gpus
        allowed += resource_limits.limit_namespace(whole.context, quota_gpus=quota)
    assert [write for write in proxy.writes if write.method != "PATCH"] == []
    unapproved = [write for write in proxy.writes if _without_identity(write.body) not in allowed]
    assert [write.path for write in unapproved if not _is_fence(write.body)] == []


def _without_identity(body: Any) -> Any:
    """What was applied, without the label that each object gets."""
    body = copy.deepcopy(body)
    (body.get("metadata") or {}).get("labels", {}).pop(ownership.LABEL, None)
    return body


def _is_fence(body: Any) -> bool:
    """Whether it only marks a namespace before it is written to."""
    meta = body.get("metadata") or {}
    return (
        set(body) == {"metadata"}
        and set(meta.get("labels", {})) == {ownership.LABEL}
        and set(meta.get("annotations", {})) == {ownership.FENCE}
    )


def assert_as_approved(live: Live, proxy: Proxy, name: str) -> None:
    """It converged: all is there, and nothing else was ever written."""
    assert is_there(live, name)
    assert_only_approved(proxy)
