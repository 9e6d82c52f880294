"""Run the embedded cluster: `python -m slipway_localcluster --data-dir DIR --port P`."""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Protocol

import uvicorn

from slipway_localcluster import bootstrap, tls
from slipway_localcluster.pods import NoPods, PodAccess
from slipway_localcluster.server import build_app
from slipway_localcluster.store import Store
from slipway_localcluster.watch import Hub

_HOST = "127.0.0.1"


class ClusterServer(uvicorn.Server):
    """Ends the watches first, because uvicorn waits for open responses before it stops."""

    def __init__(self, config: uvicorn.Config, hub: Hub, ready_line: str) -> None:
        super().__init__(config)
        self._hub = hub
        self._ready_line = ready_line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            sys.stdout.write(self._ready_line + "\n")
            sys.stdout.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._hub.close()
        super().handle_exit(sig, frame)


class Part(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Beside:
    """The parts that run in this process beside the API, and how the API reaches the pods."""

    access: PodAccess
    parts: Sequence[Part] = ()


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="slipway_localcluster", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--gateway-port", type=int)
    parser.add_argument("--s3-endpoint", default=os.environ.get("SLIPWAY_S3_ENDPOINT_URL"))
    parser.add_argument(
        "--own-envoy", action="store_true", help="run the gateway's Envoy as a child, too"
    )
    parser.add_argument(
        "--sample-nodes", action="store_true", help="add the simulated nodes of the demo's samples"
    )
    parser.add_argument(
        "--no-controllers", action="store_true", help="serve the API only; nothing runs"
    )
    parser.add_argument(
        "--no-agents",
        action="store_true",
        help="run no pods and no gateway; slipway_localcluster.run_agents does",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    options.data_dir.mkdir(parents=True, exist_ok=True)
    # Bound first: with a busy port nothing is started or written.
    listener = _listen(options.port)
    if listener is None:
        sys.stderr.write(f"port {options.port} on {_HOST} is in use; choose another --port\n")
        return 1
    port = int(listener.getsockname()[1])
    credentials = tls.prepare(options.data_dir, port=port)
    store = Store(options.data_dir / "cluster.db", has_node_agent=not options.no_controllers)
    bootstrap.seed(store)
    try:
        if options.no_controllers:
            _serve(store, Beside(NoPods()), listener, credentials)
        else:
            _serve(store, _with_controllers(store, options), listener, credentials)
    finally:
        store.close()
    return 0


def _with_controllers(store: Store, options: argparse.Namespace) -> Beside:
    from slipway_localcluster.controllers import program  # noqa: PLC0415  an API alone does without

    program.read_schemas()
    return Beside(program.pod_access(store, options), tuple(program.parts(store, options)))


def _serve(
    store: Store, beside: Beside, listener: socket.socket, credentials: tls.Credentials
) -> None:
    hub = Hub(store)
    app = build_app(store, hub, access=beside.access, token=credentials.token)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        ssl_certfile=credentials.certificate,
        ssl_keyfile=credentials.key,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=75,
        ws="none",
    )
    port = listener.getsockname()[1]
    ready_line = f"local cluster ready at https://{_HOST}:{port} ({credentials.kubeconfig})"
    server = ClusterServer(config, hub, ready_line)

    def end(number: int, _frame: FrameType | None) -> None:
        # uvicorn raises the signal again once it has stopped; the default handler would end this
        # process before the pods. Until uvicorn has started, no other handler exists.
        if not server.started:
            raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    with ExitStack() as running:
        for part in beside.parts:
            running.callback(part.stop)
            part.start()
        server.run(sockets=[listener])


def _listen(port: int) -> socket.socket | None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # Accepted connections inherit it; without it each response waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
    except OSError:
        listener.close()
        return None
    return listener


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
