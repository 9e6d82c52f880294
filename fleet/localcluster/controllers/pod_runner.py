"""One bound pod: its directory, its init containers, its containers, its end."""

import shutil
from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from time import monotonic

from fleet.localcluster.controllers import container_states, processes, triton
from fleet.localcluster.controllers.initializer import Initializer
from fleet.localcluster.controllers.storage import S3Settings
from fleet.localcluster.controllers.triton_container import TritonContainer
from fleet.localcluster.controllers.volumes import Volumes
from fleet.localcluster.errors import JsonObject

PORT_ANNOTATION = "local.slipway.dev/port-"
# Time for the gateway to stop sending requests before Triton is asked to end.
DRAIN_SECONDS = 1.5
_DEFAULT_GRACE_SECONDS = 30
_LOST = "the local cluster was stopped while the container ran"


class PodRunner:
    """Stepped by the kubelet; the status it builds is written by the kubelet."""

    def __init__(
        self,
        pod: JsonObject,
        directory: Path,
        installation: triton.Installation,
        *,
        downloads: Executor,
        probes: Executor,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        spec = pod["spec"]
        items = list(spec.get("initContainers") or ())
        self._initializers = [
            Initializer(item, Volumes(directory), directory, downloads, is_last=item is items[-1])
            for item in items
        ]
        self._containers = [
            TritonContainer(item, directory, installation, probes) for item in spec["containers"]
        ]
        self._ends_since: float | None = None
        self._grace = float(spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS))
        self._was_asked = False
        self._remember(pod)

    def _remember(self, pod: JsonObject) -> None:
        """Take over restart counts from before a restart of the cluster."""
        listed = (pod.get("status") or {}).get("containerStatuses") or ()
        known = {item["name"]: item for item in listed}
        for container in self._containers:
            before = known.get(container.state.name) or {}
            container.state.restarts = int(before.get("restartCount", 0))
            container.state.last_state = before.get("lastState") or {}
            if "running" in (before.get("state") or {}):
                container.state.state = before["state"]
                container.state.end(255, _LOST, reason="Unknown")

    def step(self, settings: S3Settings) -> None:
        for initializer in self._initializers:
            initializer.step(settings)
            if not initializer.is_done:
                for container in self._containers:
                    container.state.wait("PodInitializing")
                return
        for container in self._containers:
            container.step()

    def status(self, pod: JsonObject) -> JsonObject:
        return container_states.pod_status(
            pod,
            [item.state for item in self._initializers],
            [item.state for item in self._containers],
            is_initialized=all(item.is_done for item in self._initializers),
        )

    def ports(self) -> Mapping[int, int]:
        """Container port to real port, of the containers that run."""
        return {port: real for item in self._containers for port, real in item.ports.items()}

    def step_to_end(self) -> bool:
        """Drain, ask, wait, insist; True once nothing runs any more."""
        now = monotonic()
        if self._ends_since is None:
            self._ends_since = now
        passed = now - self._ends_since
        if all(item.has_ended() for item in self._containers) or passed > self._grace:
            self.end()
            return True
        if passed >= DRAIN_SECONDS and not self._was_asked:
            self.ask_to_end()
        return False

    def ask_to_end(self) -> None:
        self._was_asked = True
        for container in self._containers:
            container.ask_to_end()

    def has_ended(self) -> bool:
        return all(item.has_ended() for item in self._containers)

    def end(self) -> None:
        for initializer in self._initializers:
            initializer.stop()
        for container in self._containers:
            container.end()

    def remove(self) -> None:
        self.end()
        shutil.rmtree(self.directory, ignore_errors=True)


def directory_name(pod: JsonObject) -> str:
    metadata = pod["metadata"]
    return f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"


def end_leftovers(pods_directory: Path) -> int:
    """End every process that an earlier run recorded and did not end."""
    return sum(processes.end_recorded(record) for record in pods_directory.glob("*/*.pid"))
