"""Runs the controllers: one thread for what only reads and writes objects, one for pods."""

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

from fleet.localcluster import envoy
from fleet.localcluster.controllers import nodes, processes
from fleet.localcluster.controllers.deployments import Deployments
from fleet.localcluster.controllers.garbage import Garbage
from fleet.localcluster.controllers.gateway import GatewayController
from fleet.localcluster.controllers.graphs import InferenceGraphs
from fleet.localcluster.controllers.kserve import InferenceServices
from fleet.localcluster.controllers.kubelet import Kubelet
from fleet.localcluster.controllers.pod_runner import PORT_ANNOTATION
from fleet.localcluster.controllers.replica_sets import ReplicaSets
from fleet.localcluster.controllers.scheduler import Scheduler
from fleet.localcluster.controllers.storage import S3Settings
from fleet.localcluster.errors import ApiError, BadRequest, JsonObject, NotFound
from fleet.localcluster.kinds import POD
from fleet.localcluster.store import Store

logger = logging.getLogger(__name__)

# Some passes are due without a write: deadlines, and clusters that Envoy has not loaded yet.
_CONTROLLER_SECONDS = 0.5
_KUBELET_SECONDS = 0.2
_FAULTS = (ApiError, LookupError, TypeError, ValueError, AttributeError, OSError)


class ControllerManager:
    """Starts and stops once. Gives the API the logs and addresses of pods."""

    def __init__(
        self,
        store: Store,
        *,
        data_dir: Path,
        gateway_port: int | None,
        s3: S3Settings,
        has_own_envoy: bool = False,
    ) -> None:
        data_dir = data_dir.resolve()
        self._store = store
        self._data_dir = data_dir
        self._has_own_envoy = has_own_envoy and gateway_port is not None
        self._stopping = threading.Event()
        self._kubelet = Kubelet(store, data_dir=data_dir, s3=s3)
        self._gateway = GatewayController(store, data_dir=data_dir, port=gateway_port)
        self._controllers: list[Callable[[], None]] = [
            Garbage(store).reconcile,
            InferenceServices(store).reconcile,
            InferenceGraphs(store).reconcile,
            Deployments(store).reconcile,
            ReplicaSets(store).reconcile,
            Scheduler(store).reconcile,
            self._gateway.reconcile,
        ]
        self._threads = [
            threading.Thread(target=self._run_controllers, name="controllers", daemon=True),
            threading.Thread(target=self._run_kubelet, name="kubelet", daemon=True),
        ]
        self._envoy: processes.Child | None = None

    def start(self) -> None:
        """Recover first, so that the gateway never routes to a stale address."""
        nodes.seed(self._store, nodes.detect_real())
        self._gateway.seed()
        self._kubelet.recover()
        self._gateway.reconcile()
        if self._has_own_envoy:
            self._start_envoy()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End every child within seconds; the objects stay for the next start."""
        self._stopping.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=10)
        self._kubelet.stop(threading.Event())
        if self._envoy is not None:
            self._envoy.kill()

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

    def _run_controllers(self) -> None:
        while not self._stopping.is_set():
            revision = self._store.revision
            for reconcile in self._controllers:
                _run_once(reconcile)
            self._store.wait(revision, _CONTROLLER_SECONDS)

    def _run_kubelet(self) -> None:
        while not self._stopping.is_set():
            _run_once(self._kubelet.reconcile)
            self._stopping.wait(_KUBELET_SECONDS)

    def pod_address(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """The address behind a container port; raises NotFound."""
        pod = self._store.get(POD, namespace, name)
        text = (pod["metadata"].get("annotations") or {}).get(f"{PORT_ANNOTATION}{port}")
        if text is None:
            raise NotFound(f'pod "{name}" does not listen on port {port} now')
        return processes.LOCALHOST, int(text)

    def pod_log(
        self,
        namespace: str,
        name: str,
        *,
        container: str | None = None,
        tail_lines: int | None = None,
        is_previous: bool = False,
    ) -> str:
        """The log of a container since its last start, or of the run before that."""
        pod = self._store.get(POD, namespace, name)
        path = self._kubelet.log_path(pod, _container_name(pod, container), is_previous=is_previous)
        lines = path.read_text(errors="replace").splitlines(keepends=True)
        if tail_lines is None:
            return "".join(lines)
        return "".join(lines[-tail_lines:] if tail_lines else [])


def _container_name(pod: JsonObject, requested: str | None) -> str:
    """The named container, else the only or first one; raises BadRequest."""
    spec = pod["spec"]
    listed = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    names = [str(item["name"]) for item in listed]
    if requested is None:
        return names[0]
    if requested not in names:
        pod_name = pod["metadata"]["name"]
        raise BadRequest(f"container {requested} is not valid for pod {pod_name}")
    return requested


def _run_once(reconcile: Callable[[], None]) -> None:
    """A fault in one controller must not stop the others; the next pass retries."""
    try:
        reconcile()
    except _FAULTS:
        logger.exception("a controller failed")
