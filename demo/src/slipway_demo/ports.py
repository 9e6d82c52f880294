"""Chooses TCP ports on 127.0.0.1, the same ones at every start where possible, and holds them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from slipway_demo import REPOSITORY
from slipway_demo.held_ports import HeldPorts

_LAST_PORT = 65_535


class PortBusy(Exception):
    """The requested port is in use; the message gives the fix."""


class PortTaken(Exception):
    """Another program listens on the chosen port of a part."""

    def __init__(self, part: str, port: int) -> None:
        super().__init__(f"Port {port} of {part} was taken by another program.")
        self.part, self.port = part, port


@dataclass(frozen=True, slots=True)
class Ports:
    web: int = 8000
    gateway: int = 8090
    cluster: int = 8443
    s3: int = 9000
    valkey: int = 6390

    def to_json(self) -> dict[str, int]:
        return asdict(self)


def choose(
    held: HeldPorts,
    *,
    remembered: Mapping[str, int],
    web: int | None,
    patience_seconds: float = 0,
) -> Ports:
    """Choose free ports and hold them. A given `web` is binding; 0 means any port for every part.

    `patience_seconds` is how long to wait for a remembered port, because parts of a killed start need a
    moment to end. Raises PortBusy.
    """
    deadline = time.monotonic() + patience_seconds
    if web == 0:
        return Ports(*_hold_any(held, len(Ports().to_json())))
    chosen = Ports().to_json() | {k: v for k, v in remembered.items() if k in Ports().to_json()}
    used: set[int] = set()
    for name, port in chosen.items():
        if name == "web" and web:
            chosen[name] = _hold_exactly(held, web)
        else:
            wait = deadline if port == remembered.get(name) else 0.0
            chosen[name] = _hold_from(held, port, used, wait)
        used.add(chosen[name])
    return Ports(**chosen)


def describe_moved(remembered: Mapping[str, int], chosen: Ports) -> list[str]:
    """Describe each part that is elsewhere than at the last start, where someone may look for it, in a sentence."""
    return [
        f"Port {remembered[name]} is in use by another program: {name} is at {port} this time."
        for name, port in chosen.to_json().items()
        if remembered.get(name, port) != port
    ]


def _hold_exactly(held: HeldPorts, port: int) -> int:
    if not held.hold(port):
        raise PortBusy(
            f"Port {port} on 127.0.0.1 is in use by another program. Stop it, or choose another "
            f"port: SLIPWAY_PORT={port + 1} make demo"
        )
    return port


def _hold_from(held: HeldPorts, port: int, taken: set[int], deadline: float) -> int:
    """Hold the port, or the next one that is free and not `taken` by another part."""
    while port not in taken and not held.hold(port) and time.monotonic() < deadline:
        time.sleep(0.2)
    while port in taken or not held.hold(port):
        port += 1
        if port > _LAST_PORT:
            return _hold_any(held, 1)[0]
    return port


def _hold_any(held: HeldPorts, count: int) -> list[int]:
    """Hold ports that stay free for the next start: none that the system draws for a client."""
    chosen: list[int] = []
    while len(chosen) < count:
        chosen += [port for port in _draw(count - len(chosen)) if held.hold(port)]
    return chosen


def _draw(count: int) -> list[int]:
    # A program of its own: the demo starts the local cluster, it does not import it.
    command = (sys.executable, "-m", "slipway_localcluster.controllers.free_ports", str(count))
    drawn = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    return [int(port) for port in drawn.stdout.split()]
