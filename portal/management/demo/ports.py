"""Free TCP ports on 127.0.0.1, the same ones at every start where possible."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

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
        chosen = dict.fromkeys(Ports().to_json(), 0)
    else:
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
    if port == 0:
        return _any(taken)
    while not is_free(port) and time.monotonic() < deadline:
        time.sleep(0.2)
    while port in taken or not is_free(port):
        port += 1
        if port > _LAST_PORT:
            return _any(taken)
    return port


def _any(taken: set[int]) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in taken:
            return port
