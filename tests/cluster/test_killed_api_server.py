"""An API server that is killed in the middle of a push: what was requested arrives soon after it serves again."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.delivery.domain import refusals
from deployments.states import Environment
from fleet.kube.gateways.client import HttpKubeClient
from fleet.kube.services import clients
from fleet.models import Cluster
from portal.core import clock
from slipway_localcluster.controllers import free_ports
from tests.cluster import running
from tests.cluster.kubectl import Kubectl
from tests.cluster.processes import Server
from tests.contract.delivered import Delivered, cluster_calls, delivered, moving_clock, world

__all__ = ["cluster_calls", "delivered", "moving_clock", "world"]
_BACK_WITHIN = timedelta(seconds=10)
_OUTAGE_PASSES = 12


class OwnApiServer:
    """A second API server on the etcd of the cluster, which a test may kill."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_ports.take_one()
        administrator = Path(os.environ["SLIPWAY_TEST_ADMIN_KUBECONFIG"])
        server = yaml.safe_load(administrator.read_text())["clusters"][0]["cluster"]["server"]
        self._first_port = server.rpartition(":")[2]
        self._command = [
            part.replace(f"--secure-port={self._first_port}", f"--secure-port={self.port}")
            for part in self._command_of_the_first()
        ]
        self._process: Server | None = None

    def _command_of_the_first(self) -> list[str]:
        port = f"--secure-port={self._first_port}"
        (found,) = [
            command
            for process in psutil.process_iter(["cmdline"])
            if port in (command := process.info["cmdline"] or [])
            and command[0].endswith("kube-apiserver")
        ]
        return found

    def start(self) -> None:
        self._process = Server(self._command, folder=self.folder)
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        self._process.wait_until_ready(f"https://127.0.0.1:{self.port}/readyz", trust)
        # Ready, it refuses lists for some seconds: "storage is (re)initializing".
        administrator = Path(os.environ["SLIPWAY_TEST_ADMIN_KUBECONFIG"])
        running.wait_for_storage(Kubectl(self.kubeconfig(administrator)))

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()

    def kubeconfig(self, of: Path) -> Path:
        """Write the kubeconfig `of` again, with the address of this server."""
        path = self.folder / f"own-{of.name}"
        path.write_text(of.read_text().replace(f":{self._first_port}", f":{self.port}"))
        return path


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[OwnApiServer]:
    server = OwnApiServer(tmp_path)
    server.start()
    yield server
    server.kill()


def test_what_was_requested_arrives_within_ten_seconds_of_the_servers_return(
    delivered: Delivered,
    own_server: OwnApiServer,
    kubeconfig: Path,
    monkeypatch: pytest.MonkeyPatch,
    journey: Callable[[str], None],
) -> None:
    rows = Cluster.objects.filter(pk=delivered.world.cluster_id)
    rows.update(kubeconfig_path=str(own_server.kubeconfig(kubeconfig)))
    clients.forget()
    applied: list[str] = []
    apply = HttpKubeClient.apply

    def apply_two_and_kill(self: HttpKubeClient, manifest: Any, **options: Any) -> Any:
        if not options.get("dry_run"):
            applied.append(manifest["kind"])
            if len(applied) == 3:
                own_server.kill()
        return apply(self, manifest, **options)

    draft = delivered.world.draft("ours", Environment.STAGING, engine="triton")
    change = requests.request_deploy(actor=delivered.world.member, draft=draft)
    monkeypatch.setattr(HttpKubeClient, "apply", apply_two_and_kill)
    delivered.world.approved(change)
    deployment = deployment_of(change)
    for _ in range(_OUTAGE_PASSES):
        delivered.world.clock.move(30)
        delivered.world.work()
    deployment.refresh_from_db()
    sent = len(applied)
    assert sent >= 3
    assert "Deployment" not in applied[:2]
    assert refusals.NOT_ANSWERING in deployment.state_reason
    own_server.start()

    assert deployment.next_check_at is not None
    assert deployment.next_check_at - clock.now() <= _BACK_WITHIN
    for _ in range(5):
        delivered.world.clock.move(_BACK_WITHIN.total_seconds() / 5)
        delivered.world.work()

    deployment.refresh_from_db()
    assert "Deployment" in applied[sent:], (applied, deployment.state_reason)
    assert delivered.get("apps/v1", "Deployment", "ours-r1")["spec"]["replicas"] >= 1
    assert refusals.NOT_ANSWERING not in deployment.state_reason
    rows.update(kubeconfig_path=str(kubeconfig))
    clients.forget()
    journey("an API server killed in the middle of a push: all arrived within 10 s of its return")
