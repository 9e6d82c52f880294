"""Holds TCP ports of 127.0.0.1 from their choice until this process ends."""

from __future__ import annotations

import socket
from contextlib import suppress


class HeldPorts:
    """Ports that no other demo chooses and no other program draws, while a part of this demo may listen on them.

    A bound socket that does not listen refuses every program that shares no addresses, and lets in one with
    SO_REUSEADDR, as all parts have. The name of an abstract Unix socket tells another demo, which shares too.
    """

    def __init__(self) -> None:
        self._sockets: dict[int, tuple[socket.socket, socket.socket]] = {}

    def hold(self, port: int) -> bool:
        """Return False if a program listens on the port or another demo holds it."""
        if port in self._sockets:
            return True
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            name.bind(f"\0slipway-demo-port-{port}")
            bound.bind(("127.0.0.1", port))
            self._sockets[port] = name, bound
            return True
        name.close()
        bound.close()
        return False

    def release(self) -> None:
        for pair in self._sockets.values():
            for held in pair:
                held.close()
        self._sockets.clear()
