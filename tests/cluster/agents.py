"""Node agent and gateway as clients of the real API server, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fleet.clusters.services import capabilities
from fleet.models import Cluster
from slipway_localcluster.controllers import free_ports
from slipway_localcluster.controllers.nodes import SIMULATED
from tests.cluster.egress import POD_TUNNEL
from tests.cluster.kubectl import Kubectl

_ROOT = Path(__file__).parents[2]
_GPU_TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
_STOP_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Agents:
    gateway_port: int
    log: Path


@pytest.fixture
def agents(s3_store: Any, settings: Any, tmp_path: Path, admin: Kubectl) -> Iterator[Agents]:
    """Their nodes are gone afterwards."""
    pytest.importorskip("pytriton")
    port = free_ports.take_one()
    log = tmp_path / "agents.log"
    command = [sys.executable, "-m", "slipway_localcluster.run_agents", "--own-envoy"]
    command += [f"--kubeconfig={admin.kubeconfig}", f"--data-dir={tmp_path}"]
    command += [f"--gateway-port={port}", f"--pod-tunnel={admin.kubeconfig.parent / POD_TUNNEL}"]
    environment = {**os.environ, "SLIPWAY_S3_ENDPOINT_URL": settings.SLIPWAY_S3_ENDPOINT_URL}
    names = [machine.name for machine in SIMULATED]
    with ExitStack() as stack:
        stack.callback(admin.run, "delete", "node", *names, "--ignore-not-found")
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stack.enter_context(log.open("w")),
            text=True,
        )
        assert process.stdout is not None
        stack.callback(process.stdout.close)
        stack.callback(process.wait, timeout=_STOP_SECONDS)
        stack.callback(process.terminate)
        assert "ready" in process.stdout.readline(), log.read_text()
        for name in names:
            # Without the taint of a new node, which the node lifecycle controller takes away.
            admin.patch("node", name, patch={"spec": {"taints": [_GPU_TAINT]}})
        yield Agents(port, log)


@pytest.fixture
def served_cluster(cluster_id: int, namespace: str, agents: Agents) -> Cluster:
    """Registered, and probed as an administrator's test of the connection does, with the permissions
    that came with the namespace.
    """
    assert namespace
    url = f"http://127.0.0.1:{agents.gateway_port}"
    Cluster.objects.filter(pk=cluster_id).update(gateway_url=url)
    capabilities.probe(cluster_id=cluster_id)
    return Cluster.objects.get(pk=cluster_id)
