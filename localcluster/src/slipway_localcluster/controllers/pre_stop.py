"""The preStop hook of a container: a Python program is run before SIGTERM, with the ports of this machine.

A hook that only sleeps is left to the drain of the pod runner, which is shorter than on a real node.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from slipway_localcluster.controllers import processes
from slipway_localcluster.errors import JsonObject

_PYTHON = ["python3", "-c"]


class PreStopHook:
    def __init__(self, container: JsonObject, directory: Path) -> None:
        handler = (container.get("lifecycle") or {}).get("preStop") or {}
        self._command = [str(part) for part in (handler.get("exec") or {}).get("command") or ()]
        name = f"{container['name']}.pre-stop"
        self._log, self._record = directory / f"{name}.log", directory / f"{name}.pid"
        self._child: processes.Child | None = None

    def has_ended(self, ports: Mapping[int, int], environment: Mapping[str, str]) -> bool:
        """Start it at the first call."""
        if self._command[:2] != _PYTHON:
            return True
        if self._child is None:
            program, *arguments = self._command[2:]
            local = [_on_this_machine(argument, ports) for argument in arguments]
            self._child = processes.start(
                [sys.executable, "-c", program, *local],
                environment=environment,
                log=self._log,
                record=self._record,
            )
        return not self._child.is_running()

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


def _on_this_machine(argument: str, ports: Mapping[int, int]) -> str:
    return str(ports.get(int(argument), argument)) if argument.isdigit() else argument
