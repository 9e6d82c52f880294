"""Free TCP ports on 127.0.0.1, the same ones at every start where possible."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from portal.management.demo import REPOSITORY

_LAST_PORT = 65_535


class PortBusy(Exception):
    """The requested port is in use; the message gives the fix."""


@dataclass(frozen=True, slots=True)
class Ports:
    web: int = 8000
    gateway: int = 8090
    cluster: int = 8443
    s3: int = 9000
    valkey: int = 6390

    def to_json(self) -> dict[str, int]:
        return asdict(self)


def choose(*, remembered: Mapping[str, int], web: int | None, patience_seconds: float = 0) -> Ports:
    """Choose free ports. A given `web` is binding; 0 means any port for every part.

    `patience_seconds` is how long to wait for a remembered port, because parts of a killed start need a
    moment to end.
    """
    deadline = time.monotonic() + patience_seconds
    if web == 0:
        return Ports(*_any(len(Ports().to_json())))
    chosen = Ports().to_json() | {k: v for k, v in remembered.items() if k in Ports().to_json()}
    used: set[int] = set()
    for name, port in chosen.items():
        if name == "web" and web:
            chosen[name] = _exactly(web)
        else:
            wait = deadline if port == remembered.get(name) else 0.0
            chosen[name] = _from(port, used, wait)
        used.add(chosen[name])
    return Ports(**chosen)


def moved(remembered: Mapping[str, int], chosen: Ports) -> list[str]:
    """A sentence for each part that is elsewhere than at the last start, where someone may look for it."""
    return [
        f"Port {remembered[name]} is in use by another program: {name} is at {port} this time."
        for name, port in chosen.to_json().items()
        if remembered.get(name, port) != port
    ]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _exactly(port: int) -> int:
    if not is_free(port):
        raise PortBusy(
            f"Port {port} on 127.0.0.1 is in use by another program. Stop it, or choose another "
            f"port: SLIPWAY_PORT={port + 1} make demo"
        )
    return port


def _from(port: int, taken: set[int], deadline: float) -> int:
    while not is_free(port) and time.monotonic() < deadline:
        time.sleep(0.2)
    while port in taken or not is_free(port):
        port += 1
        if port > _LAST_PORT:
            return next(one for one in _any(len(taken) + 1) if one not in taken)
    return port


def _any(count: int) -> list[int]:
    """Ports that stay free for the next start: none that the system draws for a client."""
    # A program of its own: the demo starts the local cluster, it does not import it.
    command = (sys.executable, "-m", "fleet.localcluster.controllers.free_ports", str(count))
    drawn = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    return [int(port) for port in drawn.stdout.split()]
