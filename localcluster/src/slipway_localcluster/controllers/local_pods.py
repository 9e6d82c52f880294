"""Logs and addresses of pods that a node agent runs on this machine."""

from pathlib import Path

from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.controllers.log_times import LogFile
from slipway_localcluster.controllers.pod_runner import (
    PODS_DIRECTORY,
    PORT_ANNOTATION,
    directory_name,
)
from slipway_localcluster.controllers.processes import LOCALHOST
from slipway_localcluster.errors import BadRequest, JsonObject, NotFound
from slipway_localcluster.kinds import POD


class LocalPods:
    """Needs the data folder of the node agent, and nothing of its process."""

    def __init__(self, api: ClusterApi, data_dir: Path) -> None:
        self._api = api
        self._directory = data_dir.resolve() / PODS_DIRECTORY

    def pod_address(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """Return the address behind a container port. Raises NotFound."""
        pod = self._pod(namespace, name)
        text = (pod["metadata"].get("annotations") or {}).get(f"{PORT_ANNOTATION}{port}")
        if text is None:
            raise NotFound(f'pod "{name}" does not listen on port {port} now')
        return LOCALHOST, int(text)

    def open_log(
        self,
        namespace: str,
        name: str,
        *,
        container: str | None = None,
        is_previous: bool = False,
    ) -> LogFile:
        """Open the log of a container since its last start, or of the run before that."""
        pod = self._pod(namespace, name)
        container = _container_name(pod, container)
        try:
            path = self._log_path(pod, container, is_previous=is_previous)
            return LogFile(path, is_previous=is_previous)
        except FileNotFoundError:
            raise _no_log(pod, container, is_previous=is_previous) from None

    def _log_path(self, pod: JsonObject, container: str, *, is_previous: bool) -> Path:
        ending = ".previous.log" if is_previous else ".log"
        return self._directory / directory_name(pod) / f"{container}{ending}"

    def _pod(self, namespace: str, name: str) -> JsonObject:
        pod = self._api.find(POD, namespace, name)
        if pod is None:
            raise NotFound(f'pods "{name}" not found')
        return pod


def _no_log(pod: JsonObject, container: str, *, is_previous: bool) -> BadRequest:
    name = pod["metadata"]["name"]
    if is_previous:
        return BadRequest(f'previous terminated container "{container}" in pod "{name}" not found')
    return BadRequest(f'container "{container}" in pod "{name}" is waiting to start')


def _container_name(pod: JsonObject, requested: str | None) -> str:
    """Return the named container, or else the only or first one. Raises BadRequest."""
    spec = pod["spec"]
    listed = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    names = [str(item["name"]) for item in listed]
    if requested is None:
        return names[0]
    if requested not in names:
        pod_name = pod["metadata"]["name"]
        raise BadRequest(f"container {requested} is not valid for pod {pod_name}")
    return requested
