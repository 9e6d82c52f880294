"""Where the API server's egress selector connects to: pods through the tunnel of a node agent, when one
runs, and everything else directly.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path

from slipway_localcluster.client.pod_tunnel import ConnectProxy

# Beside the kubeconfig of the administrator; a node agent listens there.
POD_TUNNEL = "pods.sock"
_EGRESS = "egress.sock"
# The addresses that node agents give to pods, and that of the gateway's pod.
_PODS = ("10.244.", "10.243.")
_SECONDS = 10


def proxy(folder: Path) -> ConnectProxy:
    def dial(address: str) -> socket.socket:
        if address.startswith(_PODS):
            return _through_tunnel(folder / POD_TUNNEL, address)
        host, _, port = address.rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS)

    return ConnectProxy(folder / _EGRESS, dial)


def write_selection(folder: Path) -> Path:
    transport = {"uds": {"udsName": str(folder / _EGRESS)}}
    connection = {"proxyProtocol": "HTTPConnect", "transport": transport}
    selection = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
    path = folder / "egress.json"
    path.write_text(json.dumps(selection))
    return path


def _through_tunnel(path: Path, address: str) -> socket.socket:
    """Raises OSError without a node agent, and for a port where no pod listens."""
    tunnel = socket.socket(socket.AF_UNIX)
    try:
        tunnel.settimeout(_SECONDS)
        tunnel.connect(str(path))
        tunnel.sendall(f"CONNECT {address} HTTP/1.1\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            # One byte at a time: what follows belongs to the pod.
            part = tunnel.recv(1)
            if not part:
                break
            answer += part
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise ConnectionRefusedError(address)
    except OSError:
        tunnel.close()
        raise
    return tunnel
