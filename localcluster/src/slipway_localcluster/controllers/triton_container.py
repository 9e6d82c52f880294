"""One container that runs Triton or a server of the local cluster: start, probe, restart, end."""

import http.client
import re
from collections.abc import Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from time import monotonic

from slipway_localcluster.controllers import (
    answer_check,
    container_env,
    free_ports,
    log_times,
    own_servers,
    pre_stop,
    processes,
    triton,
)
from slipway_localcluster.controllers.container_states import (
    MESSAGE_LIMIT,
    ContainerState,
    backoff_seconds,
)
from slipway_localcluster.controllers.volumes import Volumes
from slipway_localcluster.errors import JsonObject

_SHARED_MEMORY = Path("/dev") / "shm"
_PROBE_TIMEOUT_SECONDS = 1.0
_PROBE_PERIOD_SECONDS = {True: 1.0, False: 0.2}
_FAILURES_TO_UNREADY = 3
_STABLE_AFTER_SECONDS = 600
_READY_PATH = "/v2/health/ready"
_ERROR_LINE = re.compile(r"^(E\d{4} |error:|Error)")
_HARMLESS = "CudaDriverHelper has not been initialized"
# Set by the installation; a pod may not point Triton at other libraries.
_FIXED_VARIABLES = {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "HOME"}


class TritonContainer:
    """Advances when `step` is called; no method blocks for long."""

    def __init__(
        self,
        container: JsonObject,
        pod_directory: Path,
        installation: triton.Installation,
        probes: Executor,
        *,
        read_environment: container_env.Read = container_env.plain_values,
    ) -> None:
        name = container["name"]
        self._read_environment = read_environment
        self.state = ContainerState(name, container.get("image", ""))
        self.ports: Mapping[int, int] = {}
        self.log = pod_directory / f"{name}.log"
        self._container = container
        self._own_server = own_servers.server_for(container)
        self._volumes = Volumes(pod_directory)
        self._record = pod_directory / f"{name}.pid"
        self._installation = installation
        self._probes = probes
        self._memory_prefix = f"{memory_prefix(pod_directory)}{name}-"
        self._child: processes.Child | None = None
        self._http_port = 0
        self._repositories: tuple[Path, ...] = ()
        self._started_at = 0.0
        self._starts_at = 0.0
        self._probe: Future[bool] | None = None
        # Why a model does not answer, empty when every model answered; None until the check starts.
        self._answer_check: Future[str] | None = None
        self._probed_at = 0.0
        self._failures = 0
        self._pre_stop = pre_stop.PreStopHook(container, pod_directory)
        self.state.wait("ContainerCreating")

    def step(self) -> None:
        """Start the process, record its end, or probe its readiness."""
        if not is_triton(self._container) and self._own_server is None:
            image = self._container.get("image", "")
            self.state.wait(
                "ErrImagePull",
                f"the local cluster runs Triton and stands in for vLLM; not the image {image!r}",
            )
        elif self._child is None:
            if monotonic() >= self._starts_at:
                self._start()
        elif not self._child.is_running():
            self._record_end(self._child)
        else:
            self._probe_readiness()

    def _start(self) -> None:
        self._clean_up()
        if self.log.exists():
            log_times.keep_as(self.log, self.log.with_suffix(".previous.log"))
        try:
            launch, environment = self._plan(), self._environment()
        except (triton.BadArguments, container_env.MissingReference) as error:
            self.state.wait("CreateContainerConfigError", str(error))
            self._starts_at = monotonic() + backoff_seconds(1)
            return
        if launch.ignored:
            names = ", ".join(launch.ignored)
            self.log.write_text(f"ignored, as this tritonserver does not know them: {names}\n")
        self._child = processes.start(
            launch.command, environment=environment, log=self.log, record=self._record
        )
        if "terminated" in self.state.state or self.state.last_state:
            self.state.restarts += 1
        self.ports, self._http_port = launch.ports, launch.http_port
        self._repositories = launch.repositories
        self._started_at, self._failures = monotonic(), 0
        self._probe, self._answer_check = None, None
        self.state.run()

    def _plan(self) -> triton.Launch:
        if self._own_server is not None:
            return self._own_server.plan_launch(self._container, free_ports.take)
        library_path = self._installation.environment["LD_LIBRARY_PATH"]
        return triton.plan_launch(
            self._installation,
            command_line(self._container),
            resolve=lambda path: self._volumes.resolve(self._container, path),
            choose_ports=free_ports.take,
            shared_memory_prefix=self._memory_prefix,
            known=triton.known_flags(self._installation.binary, library_path),
        )

    def _environment(self) -> Mapping[str, str]:
        """Raises MissingReference."""
        if self._own_server is not None:
            return self._own_server.environment()
        declared = self._read_environment(self._container)
        own = {name: value for name, value in declared.items() if name not in _FIXED_VARIABLES}
        return {**own, **self._installation.environment}

    def _record_end(self, child: processes.Child, *, message: str = "") -> None:
        code = child.exit_code()
        child.kill()
        self._child = None
        self.ports = {}
        self.state.end(code, message or (termination_message(self.log) if code else ""))
        if monotonic() - self._started_at > _STABLE_AFTER_SECONDS:
            delay = 0
        else:
            delay = backoff_seconds(self.state.restarts)
        self._starts_at = monotonic() + delay
        if delay:
            name = self.state.name
            self.state.wait(
                "CrashLoopBackOff", f"back-off {delay}s restarting failed container={name}"
            )

    def _probe_readiness(self) -> None:
        now = monotonic()
        if self._probe is not None and self._probe.done():
            self._record_probe(is_success=self._probe.result())
            self._probe = None
        elif self._probe is None and now - self._probed_at >= self._probe_interval():
            self._probed_at = now
            self._probe = self._probes.submit(is_answering, self._http_port, self._probe_path())

    def _probe_interval(self) -> float:
        return _PROBE_PERIOD_SECONDS[self.state.is_ready]

    def _record_probe(self, *, is_success: bool) -> None:
        self._failures = 0 if is_success else self._failures + 1
        if is_success and self._own_server is None and not self._has_answered():
            return
        if is_success or self._failures >= _FAILURES_TO_UNREADY:
            self.state.is_ready = is_success

    def _has_answered(self) -> bool:
        """Return whether each model has answered a request. Ends the container if one cannot."""
        if self._answer_check is None:
            self._answer_check = self._probes.submit(
                answer_check.failure_of, self._http_port, self._repositories
            )
        if not self._answer_check.done():
            return False
        failure = self._answer_check.result()
        if failure and self._child is not None:
            self._child.kill()
            self._record_end(self._child, message=failure)
        return not failure

    def _probe_path(self) -> str:
        """Return the path of the container's readiness probe, or else Triton's own."""
        declared = (self._container.get("readinessProbe") or {}).get("httpGet") or {}
        return str(declared.get("path") or _READY_PATH)

    def has_run_hook(self) -> bool:
        """Whether SIGTERM may be sent; the first call starts the container's preStop hook."""
        if self._own_server is None or self.has_ended():
            return True
        return self._pre_stop.has_ended(self.ports, self._own_server.environment())

    def terminate(self) -> None:
        """Send SIGTERM: Triton finishes the requests in flight, then exits."""
        if self._child is not None:
            self._child.terminate()

    def has_ended(self) -> bool:
        return self._child is None or not self._child.is_running()

    def kill(self) -> None:
        """End at once, and remove shared memory."""
        self._pre_stop.kill()
        if self._child is not None:
            self.state.end(self._child.exit_code())
            self._child.kill()
            self._child = None
        self.state.is_ready = False
        self.ports = {}
        self._clean_up()

    def _clean_up(self) -> None:
        remove_shared_memory(self._memory_prefix)


def memory_prefix(pod_directory: Path) -> str:
    """Return the prefix of shared memory names of the pod in this directory."""
    return f"slipway-{pod_directory.name.rpartition('_')[2]}-"


def remove_shared_memory(prefix: str) -> None:
    """Remove the segments of shared memory that a killed Triton leaves behind."""
    for segment in _SHARED_MEMORY.glob(f"{prefix}*"):
        segment.unlink(missing_ok=True)


def command_line(container: JsonObject) -> list[str]:
    return [str(item) for field in ("command", "args") for item in container.get(field) or ()]


def is_triton(container: JsonObject) -> bool:
    arguments = command_line(container)
    names_triton = bool(arguments) and arguments[0].rpartition("/")[2] == "tritonserver"
    return names_triton or "tritonserver" in str(container.get("image", ""))


def is_answering(port: int, path: str) -> bool:
    """Return whether a GET gives 2xx or 3xx: the success of a readiness probe."""
    connection = http.client.HTTPConnection(
        processes.LOCALHOST, port, timeout=_PROBE_TIMEOUT_SECONDS
    )
    with suppress(OSError, http.client.HTTPException):
        try:
            connection.request("GET", path)
            return bool(200 <= connection.getresponse().status < 400)
        finally:
            connection.close()
    return False


def termination_message(log: Path) -> str:
    """Return the error lines of a log, or its last lines, cut to the length of a termination message."""
    if not log.is_file():
        return ""
    lines = log.read_text(errors="replace").splitlines()
    errors = [line for line in lines if _ERROR_LINE.match(line) and _HARMLESS not in line]
    return "\n".join(errors or lines[-10:])[-MESSAGE_LIMIT:]
