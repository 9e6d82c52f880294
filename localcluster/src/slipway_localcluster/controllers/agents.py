"""Node agent and gateway: the clients of a Kubernetes API that run Triton and Envoy."""

import logging
import os
import threading
from pathlib import Path
from time import monotonic

from slipway_localcluster import envoy
from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.controllers import node_leases, nodes, processes
from slipway_localcluster.controllers.gateway import GatewayController
from slipway_localcluster.controllers.kubelet import Kubelet
from slipway_localcluster.controllers.reconcile import run_once, run_until
from slipway_localcluster.controllers.storage import S3Settings

logger = logging.getLogger(__name__)

_KUBELET_SECONDS = 0.2
# A pass on a busy machine may take longer; the processes of pods are ended all the same.
_JOIN_SECONDS = 8.0


class Agents:
    """Starts and stops once; each agent runs on a thread of its own."""

    def __init__(
        self,
        api: ClusterApi,
        *,
        data_dir: Path,
        gateway_port: int | None,
        s3: S3Settings,
        has_own_envoy: bool = False,
        kubelet_port: int = 0,
        has_sample_nodes: bool = False,
    ) -> None:
        data_dir = data_dir.resolve()
        self._api = api
        self._data_dir = data_dir
        self._kubelet_port = kubelet_port
        self._has_own_envoy = has_own_envoy and gateway_port is not None
        self._stopping = threading.Event()
        self._gpus = nodes.detect_real()
        self._has_sample_nodes = has_sample_nodes
        self.node_names = nodes.names(self._gpus, has_samples=has_sample_nodes)
        self._kubelet = Kubelet(api, nodes=self.node_names, data_dir=data_dir, s3=s3)
        self._gateway = GatewayController(api, data_dir=data_dir, port=gateway_port)
        self._threads = [
            threading.Thread(target=self._run_gateway, name="gateway", daemon=True),
            threading.Thread(target=self._run_kubelet, name="kubelet", daemon=True),
        ]
        self._envoy: processes.Child | None = None

    def start(self) -> None:
        """Start the agents. They recover first, so that the gateway never routes to a stale address."""
        self._register_nodes()
        self._gateway.seed()
        self._kubelet.recover()
        self._gateway.reconcile()
        if self._has_own_envoy:
            self._start_envoy()
        for thread in self._threads:
            thread.start()

    def heartbeat(self) -> None:
        """Keep the nodes ready where a node lifecycle controller watches them."""
        self._register_nodes()
        node_leases.renew(self._api, self.node_names)

    def stop(self) -> None:
        """End every child within seconds; the objects stay for the next start."""
        self._stopping.set()
        deadline = monotonic() + _JOIN_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=max(deadline - monotonic(), 0))
        self._kubelet.stop(threading.Event())
        if self._envoy is not None:
            self._envoy.kill()

    def _register_nodes(self) -> None:
        nodes.register(
            self._api, self._gpus, self._kubelet_port, has_samples=self._has_sample_nodes
        )

    def _start_envoy(self) -> None:
        directory = self._data_dir / "envoy"
        record = directory / "envoy.pid"
        processes.end_recorded(record)
        self._envoy = processes.start(
            envoy.command(self._data_dir),
            environment={"PATH": os.environ.get("PATH", "")},
            log=directory / "envoy.log",
            record=record,
        )

    def _run_gateway(self) -> None:
        run_until(self._stopping, self._api, [self._gateway.reconcile, self._restart_envoy])

    def _restart_envoy(self) -> None:
        """Envoy ends at once when another process holds one of its ports for a moment."""
        if self._envoy is not None and not self._envoy.is_running():
            logger.warning("Envoy ended with exit code %s; restarting", self._envoy.exit_code())
            self._start_envoy()

    def _run_kubelet(self) -> None:
        while not self._stopping.is_set():
            run_once(self._kubelet.reconcile)
            self._stopping.wait(_KUBELET_SECONDS)
