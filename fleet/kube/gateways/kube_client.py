"""The one door to Kubernetes clusters: objects, watches, logs and the pod proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fleet.kube.domain.label_selectors import Labels
from fleet.kube.domain.pod_proxy import PodRequest, PodResponse
from fleet.kube.domain.resource_types import Manifest, ResourceType
from fleet.kube.gateways.connection_probe import ProbeStep

# The server ends a watch after this long; no data beyond it means that the stream is dead.
WATCH_SECONDS = 50

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listing:
    items: list[Json]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """An event of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Json
    resource_version: str


class KubeClient(Protocol):
    """Every method raises a ClusterError and returns within its timeout."""

    def apply(
        self,
        manifest: Manifest,
        *,
        dry_run: bool = False,
        force: bool = False,
        on_warning: Callable[[str], None] | None = None,
    ) -> Json: ...

    def get(self, kind: ResourceType, namespace: str | None, name: str) -> Json: ...

    def list_all(
        self,
        kind: ResourceType,
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: str = "",
    ) -> Listing: ...

    def delete(self, kind: ResourceType, namespace: str | None, name: str) -> None: ...

    def evict(self, namespace: str, pod: str, *, uid: str) -> None: ...

    def merge_patch(
        self,
        kind: ResourceType,
        namespace: str | None,
        name: str,
        patch: Manifest,
        *,
        dry_run: bool = False,
    ) -> Json: ...

    def watch(
        self,
        kind: ResourceType,
        *,
        resource_version: str,
        labels: Mapping[str, str] | None = None,
        seconds: int = WATCH_SECONDS,
    ) -> Iterator[WatchEvent]: ...

    def proxy_get(
        self, namespace: str, pod: str, port: int, path: str, *, seconds: float = 3.0
    ) -> str: ...

    def proxy_request(self, call: PodRequest) -> PodResponse: ...

    def pod_log(
        self,
        namespace: str,
        pod: str,
        *,
        tail_lines: int,
        limit_bytes: int | None = None,
        is_previous: bool = False,
        has_timestamps: bool = False,
    ) -> str: ...

    def version(self) -> str: ...

    def groups(self) -> dict[str, list[str]]: ...

    def resources(self, api_version: str) -> frozenset[str]: ...

    def may(self, attributes: Mapping[str, str]) -> bool: ...

    def probe_connection(self) -> list[ProbeStep]: ...

    def resource_type(self, api_version: str, kind: str) -> ResourceType: ...
