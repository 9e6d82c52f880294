"""One bound pod: its directory, init containers, containers and termination."""

import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from time import monotonic

from slipway_localcluster.controllers import (
    container_env,
    container_states,
    own_servers,
    processes,
    program_container,
    triton,
    volumes,
)
from slipway_localcluster.controllers.initializer import Initializer
from slipway_localcluster.controllers.log_times import LogTimes
from slipway_localcluster.controllers.program_container import ProgramContainer
from slipway_localcluster.controllers.storage import S3Settings
from slipway_localcluster.controllers.triton_container import TritonContainer
from slipway_localcluster.errors import JsonObject

PODS_DIRECTORY = "pods"
CLAIMS_DIRECTORY = "claims"
PORT_ANNOTATION = "local.slipway.dev/port-"
# Time for the gateway to stop sending requests before Triton receives SIGTERM.
DRAIN_SECONDS = 1.5
_LOST_MESSAGE = "the local cluster was stopped while the container ran"


class PodRunner:
    """Advances when the kubelet calls `step`; builds the status that the kubelet writes."""

    def __init__(
        self,
        pod: JsonObject,
        directory: Path,
        installation: triton.Installation,
        *,
        address: str,
        downloads: Executor,
        probes: Executor,
        claims_directory: Path | None = None,
        read_environment: container_env.Read = container_env.plain_values,
    ) -> None:
        self.address = address
        directory.mkdir(parents=True, exist_ok=True)
        volumes.make_empty(pod, directory)
        self.directory = directory
        spec = pod["spec"]
        items = list(spec.get("initContainers") or ())
        needs_weights = not any(
            own_servers.server_for(item) is own_servers.LANGUAGE_SERVER
            for item in spec["containers"]
        )
        claims = _claims_of(pod, claims_directory or directory / "claims")
        self._initializers = [
            Initializer(
                item,
                volumes.Volumes(directory, claims),
                directory,
                downloads,
                is_last=item is items[-1],
                needs_weights=needs_weights,
                runs_once=spec.get("restartPolicy") == "Never",
            )
            for item in items
        ]
        self._containers: list[TritonContainer | ProgramContainer] = [
            ProgramContainer(item, directory, installation, read_environment=read_environment)
            if program_container.is_program(item)
            else TritonContainer(
                item, directory, installation, probes, read_environment=read_environment
            )
            for item in spec["containers"]
        ]
        self._log_times = LogTimes(directory)
        self._terminating_since: float | None = None
        self._has_sent_sigterm = False
        self._restore_restarts(pod)

    def _restore_restarts(self, pod: JsonObject) -> None:
        """Take over restart counts from before a restart of the cluster."""
        listed = (pod.get("status") or {}).get("containerStatuses") or ()
        statuses = {item["name"]: item for item in listed}
        for container in self._containers:
            before = statuses.get(container.state.name) or {}
            container.state.restarts = int(before.get("restartCount", 0))
            container.state.last_state = before.get("lastState") or {}
            if "running" in (before.get("state") or {}):
                container.state.state = before["state"]
                container.state.end(255, _LOST_MESSAGE, reason="Unknown")

    def step(self, read_settings: Callable[[], S3Settings]) -> None:
        """Take the next step; `read_settings` is called when a download starts."""
        self._log_times.note()
        for initializer in self._initializers:
            initializer.step(read_settings)
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
            address=self.address,
        )

    def ports(self) -> Mapping[int, int]:
        """Return container port to real port, of the containers that run."""
        return {port: real for item in self._containers for port, real in item.ports.items()}

    def step_termination(self, grace_seconds: float) -> bool:
        """Drain and preStop hooks, SIGTERM, wait for the grace period, SIGKILL; True once nothing runs."""
        self._log_times.note()
        now = monotonic()
        if self._terminating_since is None:
            self._terminating_since = now
        elapsed = now - self._terminating_since
        if all(item.has_ended() for item in self._containers) or elapsed > grace_seconds:
            self.kill()
            return True
        running_hooks = [item for item in self._containers if not item.has_run_hook()]
        if elapsed >= DRAIN_SECONDS and not running_hooks and not self._has_sent_sigterm:
            self.terminate()
        return False

    def terminate(self) -> None:
        self._has_sent_sigterm = True
        for container in self._containers:
            container.terminate()

    def has_ended(self) -> bool:
        return all(item.has_ended() for item in self._containers)

    def kill(self) -> None:
        for initializer in self._initializers:
            initializer.stop()
        for container in self._containers:
            container.kill()

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


def _claims_of(pod: JsonObject, directory: Path) -> dict[str, Path]:
    """Return the shared directory behind each volume of a claim."""
    namespace = directory / str(pod.get("metadata", {}).get("namespace", ""))
    return {
        item["name"]: namespace / item["persistentVolumeClaim"]["claimName"]
        for item in pod["spec"].get("volumes") or ()
        if "persistentVolumeClaim" in item
    }


def directory_name(pod: JsonObject) -> str:
    metadata = pod["metadata"]
    return f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"


def end_orphans(pods_directory: Path) -> int:
    """End the processes that an earlier run recorded and did not end; return their number."""
    return sum(processes.end_recorded(record) for record in pods_directory.glob("*/*.pid"))
