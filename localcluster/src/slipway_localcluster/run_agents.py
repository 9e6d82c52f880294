"""Run node agent and gateway for any Kubernetes API server.

`python -m slipway_localcluster.run_agents --kubeconfig FILE --data-dir DIR [--gateway-port PORT]
[--pod-tunnel SOCKET]`

They register their nodes, run the pods that a scheduler binds to these, and program Envoy with the
HTTPRoutes of the Gateway `slipway-gateway/slipway`. Scheduler and controllers run elsewhere.
"""

import argparse
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from slipway_localcluster.client import kubeconfig
from slipway_localcluster.client.http_api import HttpClusterApi
from slipway_localcluster.client.kubeconfig import Connection
from slipway_localcluster.client.kubelet_api import KubeletApi
from slipway_localcluster.client.pod_tunnel import pod_tunnel
from slipway_localcluster.controllers import node_leases
from slipway_localcluster.controllers.agents import Agents
from slipway_localcluster.controllers.reconcile import run_once
from slipway_localcluster.controllers.storage import S3Settings
from slipway_localcluster.errors import ApiError, NotFound
from slipway_localcluster.kinds import (
    AUTHORIZATION_POLICY,
    BACKEND_TRAFFIC_POLICY,
    ENVOY_EXTENSION_POLICY,
    GATEWAY,
    GATEWAY_CLASS,
    HTTP_ROUTE,
    HTTP_ROUTE_FILTER,
    POD,
    REQUEST_AUTHENTICATION,
    SECRET,
    SECURITY_POLICY,
    SERVICE,
    Kind,
)

_WATCHED = (POD, SERVICE, GATEWAY_CLASS, GATEWAY, HTTP_ROUTE)
# One kind of each product, and what comes with it.
_POLICIES = {
    SECURITY_POLICY: (SECRET, BACKEND_TRAFFIC_POLICY, ENVOY_EXTENSION_POLICY, HTTP_ROUTE_FILTER),
    AUTHORIZATION_POLICY: (REQUEST_AUTHENTICATION,),
}


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="slipway_localcluster.run_agents",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--context", help="default: the current context of the kubeconfig")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--gateway-port", type=int)
    parser.add_argument(
        "--pod-tunnel",
        type=Path,
        help="a Unix socket for the egress selector of the API server, to reach pods",
    )
    parser.add_argument("--s3-endpoint", default=os.environ.get("SLIPWAY_S3_ENDPOINT_URL"))
    parser.add_argument(
        "--own-envoy", action="store_true", help="run the gateway's Envoy as a child, too"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        _run(options, stopping)
    except (ApiError, kubeconfig.InvalidKubeconfig) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _watched(connection: Connection) -> tuple[Kind, ...]:
    """Return the kinds to watch, with policies, and the Secrets that they name, if the cluster has the kind."""
    watched: tuple[Kind, ...] = _WATCHED
    for first, others in _POLICIES.items():
        for kind in (first, *others):
            with suppress(NotFound):
                HttpClusterApi(connection, ()).list(kind)
                watched = (*watched, kind)
    return watched


def _kubelet_api(api: HttpClusterApi, connection: Connection, data_dir: Path) -> KubeletApi | None:
    """Return the kubelet API. None if the kubeconfig names no authority, by which an API server is known."""
    if not connection.authority:
        return None
    return KubeletApi(api, data_dir, connection.authority)


def _run(options: argparse.Namespace, stopping: threading.Event) -> None:
    options.data_dir.mkdir(parents=True, exist_ok=True)
    connection = kubeconfig.read(options.kubeconfig, options.context)
    api = HttpClusterApi(connection, _watched(connection))
    api.start()
    tunnel = pod_tunnel(api, options.pod_tunnel) if options.pod_tunnel else None
    kubelet = _kubelet_api(api, connection, options.data_dir)
    servers = [server for server in (tunnel, kubelet) if server is not None]
    agents = Agents(
        api,
        data_dir=options.data_dir,
        gateway_port=options.gateway_port,
        s3=S3Settings.from_environment(endpoint_url=options.s3_endpoint),
        has_own_envoy=options.own_envoy,
        kubelet_port=kubelet.port if kubelet else 0,
    )
    try:
        for server in servers:
            server.start()
        agents.start()
        agents.heartbeat()
        sys.stdout.write(f"agents ready with the nodes {', '.join(sorted(agents.node_names))}\n")
        sys.stdout.flush()
        while not stopping.wait(node_leases.RENEW_SECONDS):
            run_once(agents.heartbeat)
    finally:
        agents.stop()
        for server in servers:
            server.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
