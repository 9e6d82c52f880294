"""Exporters that run on each node, read through the API server's pod proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from fleet.kube.domain.resource_types import POD
from fleet.kube.gateways.kube_client import KubeClient

_THREADS: Final = 16
_SECONDS: Final = 3.0
Page = TypeVar("Page")


@dataclass(frozen=True, slots=True)
class Exporter:
    namespace: str
    pod: str
    node: str
    port: int


def list_exporters(
    client: KubeClient, labels: Iterable[Mapping[str, str]], *, port: int
) -> list[Exporter]:
    """List the exporters: running pods with any of the labels. `port` is used if no container port is named
    metrics. Raises ClusterError.
    """
    pods = [pod for each in labels for pod in client.list_all(POD, labels=each).items]
    by_name = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in pods}
    return [
        Exporter(namespace, name, pod["spec"]["nodeName"], _port(pod, port))
        for (namespace, name), pod in sorted(by_name.items())
        if (pod.get("status") or {}).get("phase") == "Running" and pod["spec"].get("nodeName")
    ]


def read_page(client: KubeClient, exporter: Exporter, path: str = "metrics") -> str:
    """Raises ClusterError."""
    return client.proxy_get(exporter.namespace, exporter.pod, exporter.port, path, seconds=_SECONDS)


def read_each(exporters: list[Exporter], read: Callable[[Exporter], Page]) -> list[Page]:
    """Read the pages of the exporters concurrently, in the order of the exporters."""
    if not exporters:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(exporters))) as pool:
        return list(pool.map(read, exporters))


def _port(pod: Mapping[str, Any], default: int) -> int:
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == "metrics":
                return int(port["containerPort"])
    return default
