"""One container that runs a Python program which starts Triton itself, as a load test does; it runs once.

Its command is `python3 -c PROGRAM`, and its arguments are the path of the termination message and Triton's
own command line.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from slipway_localcluster.controllers import container_env, free_ports, processes, triton
from slipway_localcluster.controllers.container_states import MESSAGE_LIMIT, ContainerState
from slipway_localcluster.controllers.triton_container import memory_prefix, remove_shared_memory
from slipway_localcluster.controllers.volumes import Volumes
from slipway_localcluster.errors import JsonObject

_COMMAND = ["python3", "-c"]
_MESSAGE_PATH = "/dev/termination-log"
# As a kubelet keeps of the file.
_MESSAGE_BYTES = 2 * MESSAGE_LIMIT
# Set by the installation.
_FIXED_VARIABLES = {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "HOME"}


def is_program(container: JsonObject) -> bool:
    command = container.get("command") or []
    return list(command[:2]) == _COMMAND and "tritonserver" in (container.get("args") or ())


class ProgramContainer:
    """Has the interface of TritonContainer."""

    def __init__(
        self,
        container: JsonObject,
        pod_directory: Path,
        installation: triton.Installation,
        *,
        read_environment: container_env.Read = container_env.plain_values,
    ) -> None:
        name = container["name"]
        self.state = ContainerState(name, container.get("image", ""))
        self.ports: Mapping[int, int] = {}
        self.log = pod_directory / f"{name}.log"
        self._container = container
        self._read_environment = read_environment
        self._installation = installation
        self._volumes = Volumes(pod_directory)
        self._message = pod_directory / f"{name}.message"
        self._scratch = pod_directory / f"{name}.scratch"
        self._record = pod_directory / f"{name}.pid"
        self._memory_prefix = f"{memory_prefix(pod_directory)}{name}-"
        self._child: processes.Child | None = None
        self.state.wait("ContainerCreating")

    def step(self) -> None:
        """Start the program, or record its end."""
        if "terminated" in self.state.state:
            return
        if self._child is None:
            self._start()
        elif not self._child.is_running():
            self._end(self._child)

    def _start(self) -> None:
        try:
            command, environment = self._command(), self._environment()
        except (triton.BadArguments, container_env.MissingReference) as error:
            self.state.wait("CreateContainerConfigError", str(error))
            return
        self._scratch.mkdir(exist_ok=True)
        self._message.touch()
        self._child = processes.start(
            command, environment=environment, log=self.log, record=self._record
        )
        self.state.run()

    def _command(self) -> list[str]:
        """Return the command with Triton's arguments as this machine can run them, and paths of this machine."""
        program, arguments = self._container["command"][2:], self._container["args"]
        start = arguments.index("tritonserver")
        launch = triton.plan_launch(
            self._installation,
            arguments[start:],
            resolve=lambda path: self._volumes.resolve(self._container, path),
            choose_ports=free_ports.take,
            shared_memory_prefix=self._memory_prefix,
            known=triton.known_flags(
                self._installation.binary, self._installation.environment["LD_LIBRARY_PATH"]
            ),
        )
        path = self._container.get("terminationMessagePath") or _MESSAGE_PATH
        own = [str(self._message) if item == path else str(item) for item in arguments[:start]]
        return [sys.executable, "-c", *program, *own, *launch.command]

    def _environment(self) -> Mapping[str, str]:
        """Raises MissingReference."""
        declared = self._read_environment(self._container)
        own = {name: value for name, value in declared.items() if name not in _FIXED_VARIABLES}
        return {**own, **self._installation.environment, "TMPDIR": str(self._scratch)}

    def _end(self, child: processes.Child) -> None:
        code = child.exit_code()
        child.kill()
        self._child = None
        self.state.end(code, self._message.read_bytes()[:_MESSAGE_BYTES].decode(errors="replace"))
        remove_shared_memory(self._memory_prefix)

    def has_run_hook(self) -> bool:
        return True

    def terminate(self) -> None:
        if self._child is not None:
            self._child.terminate()

    def has_ended(self) -> bool:
        return self._child is None or not self._child.is_running()

    def kill(self) -> None:
        if self._child is not None:
            self.state.end(self._child.exit_code())
            self._child.kill()
            self._child = None
        remove_shared_memory(self._memory_prefix)
