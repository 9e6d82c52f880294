"""One Kubernetes client per cluster and process, reused so that its connections stay open."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fleet.kube.domain.connection import Connection
from fleet.kube.gateways.client import HttpKubeClient
from fleet.kube.gateways.kube_client import KubeClient
from fleet.models import Cluster
from portal.core.errors import NotFound
from portal.core.single_row import find_one

_lock = threading.Lock()
_clients: dict[tuple[int, Connection, float], KubeClient] = {}
# Tests put a fake here; nothing else does.
factory: Callable[[Connection], KubeClient] = HttpKubeClient
_CONNECTION: Final = ("name", "kind", "kubeconfig_path", "eks_name", "region", "role_arn")


def build_connection(cluster: Cluster) -> Connection:
    return Connection(
        name=cluster.name,
        kind=cluster.kind,
        kubeconfig_path=cluster.kubeconfig_path,
        eks_name=cluster.eks_name,
        region=cluster.region,
        role_arn=cluster.role_arn,
    )


def connect(connection: Connection) -> KubeClient:
    """Return the client of a connection. Clients are kept by process, because a forked worker must not share its
    parent's sockets, and by the age of the kubeconfig, because its credentials may have been replaced.
    """
    key = (os.getpid(), connection, _written_at(connection.kubeconfig_path))
    with _lock:
        client = _clients.get(key)
    if client is None:
        made = factory(connection)
        with _lock:
            client = _clients.setdefault(key, made)
    return client


def _written_at(path: str) -> float:
    try:
        return Path(path).stat().st_mtime if path else 0.0
    except OSError:
        return 0.0


def client_for(cluster_id: int) -> KubeClient:
    cluster = find_one(Cluster.objects.only(*_CONNECTION).filter(pk=cluster_id))
    if cluster is None:
        raise NotFound(f"Cluster {cluster_id} does not exist.")
    return connect(build_connection(cluster))


def forget() -> None:
    """Drop all clients, for example after the credentials of a cluster were replaced."""
    with _lock:
        _clients.clear()
