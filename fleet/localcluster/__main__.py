"""Run the embedded cluster: `python -m fleet.localcluster --data-dir DIR --port P`."""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import uvicorn

from fleet.localcluster import bootstrap, tls
from fleet.localcluster.controllers.agents import Agents
from fleet.localcluster.controllers.local_pods import LocalPods
from fleet.localcluster.controllers.manager import ControllerManager
from fleet.localcluster.controllers.storage import S3Settings
from fleet.localcluster.kinds import KINDS
from fleet.localcluster.pods import NoPods
from fleet.localcluster.schemas.lookup import schema_of
from fleet.localcluster.server import build_app
from fleet.localcluster.store import Store
from fleet.localcluster.watch import Hub

_HOST = "127.0.0.1"


class Server(uvicorn.Server):
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


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fleet.localcluster", description=__doc__)
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
        help="run no pods and no gateway; fleet.localcluster.run_agents does",
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
    # Large files are read now, so that the first request does not wait.
    for kind in KINDS:
        schema_of(kind)
    try:
        _serve(store, options, listener, credentials)
    finally:
        store.close()
    return 0


def _serve(
    store: Store, options: argparse.Namespace, listener: socket.socket, credentials: tls.Credentials
) -> None:
    hub = Hub(store)
    access = NoPods() if options.no_controllers else LocalPods(store, options.data_dir)
    app = build_app(store, hub, access=access, token=credentials.token)
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
    server = Server(config, hub, ready_line)

    def end(number: int, _frame: FrameType | None) -> None:
        # uvicorn raises the signal again once it has stopped; the default handler would end this
        # process before the pods. Until uvicorn has started, no other handler exists.
        if not server.started:
            raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    with ExitStack() as running:
        for part in _parts(store, options):
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


def _parts(store: Store, options: argparse.Namespace) -> Iterator[Agents | ControllerManager]:
    if options.no_controllers:
        return
    if not options.no_agents:
        yield Agents(
            store,
            data_dir=options.data_dir,
            gateway_port=options.gateway_port,
            s3=S3Settings.from_environment(endpoint_url=options.s3_endpoint),
            has_own_envoy=options.own_envoy,
            has_sample_nodes=options.sample_nodes,
        )
    yield ControllerManager(store)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
