"""KubeClient over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

from fleet.kube.domain import api_groups, eviction, label_selectors
from fleet.kube.domain.connection import Connection
from fleet.kube.domain.errors import ObjectInvalid, ObjectNotFound, WatchExpired
from fleet.kube.domain.label_selectors import Labels
from fleet.kube.domain.pod_proxy import PodRequest, PodResponse
from fleet.kube.domain.resource_types import POD, Manifest, ResourceType, find
from fleet.kube.gateways.connection_probe import ProbeStep
from fleet.kube.gateways.kube_client import WATCH_SECONDS, Json, Listing, WatchEvent
from fleet.kube.gateways.status_errors import build_error
from fleet.kube.gateways.transport import Transport

FIELD_MANAGER = "slipway"
_PAGE = 500
_WATCH_GRACE_SECONDS = 15
_APPLY_SECONDS = 30.0
# Metrics of a pod with hundreds of models are below 2 MiB.
_MOST_PAGE_BYTES = 16 * 1024**2


class HttpKubeClient:
    """KubeClient over HTTP; safe to use from several threads."""

    def __init__(self, connection: Connection) -> None:
        self._transport = Transport(connection)
        self._discovered: dict[tuple[str, str], ResourceType] = {}
        self._lock = threading.Lock()

    def apply(
        self,
        manifest: Manifest,
        *,
        dry_run: bool = False,
        force: bool = False,
        on_warning: Callable[[str], None] | None = None,
    ) -> Json:
        """Apply an object server-side as `slipway`, with strict field validation."""
        metadata = manifest.get("metadata") or {}
        if not metadata.get("name"):
            raise ObjectInvalid(
                f"A {manifest.get('kind')} without metadata.name was to be applied."
            )
        kind = self.resource_type(str(manifest["apiVersion"]), str(manifest["kind"]))
        query = [*_strict(dry_run=dry_run), *([("force", "true")] if force else [])]
        return self._transport.json(
            "PATCH",
            kind.path(metadata.get("namespace"), metadata["name"]),
            query=query,
            body=manifest,
            content_type="application/apply-patch+yaml",
            read_seconds=_APPLY_SECONDS,
            on_warning=on_warning,
        )

    def get(self, kind: ResourceType, namespace: str | None, name: str) -> Json:
        return self._transport.json("GET", kind.path(namespace, name))

    def list_all(
        self,
        kind: ResourceType,
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: str = "",
    ) -> Listing:
        """List all pages. The resource version is that of the first page: a watch continues from there."""
        items: list[Json] = []
        query = [("limit", str(_PAGE)), *label_selectors.query_of(labels)]
        query += [("fieldSelector", fields)] if fields else []
        page = self._transport.json("GET", kind.path(namespace), query=query)
        version = str(page["metadata"].get("resourceVersion", ""))
        while True:
            items += [self._typed(kind, item) for item in page.get("items") or []]
            token = page["metadata"].get("continue")
            if not token:
                return Listing(items, version)
            page = self._transport.json(
                "GET", kind.path(namespace), query=[*query, ("continue", token)]
            )

    def delete(self, kind: ResourceType, namespace: str | None, name: str) -> None:
        self._transport.json(
            "DELETE", kind.path(namespace, name), query=[("propagationPolicy", "Background")]
        )

    def evict(self, namespace: str, pod: str, *, uid: str) -> None:
        """Raises Throttled while a disruption budget refuses, ObjectConflict when a newer pod has the name."""
        body = eviction.render_eviction(namespace, pod, uid=uid)
        self._transport.json("POST", f"{POD.path(namespace, pod)}/eviction", body=body)

    def merge_patch(
        self,
        kind: ResourceType,
        namespace: str | None,
        name: str,
        patch: Manifest,
        *,
        dry_run: bool = False,
    ) -> Json:
        return self._transport.json(
            "PATCH",
            kind.path(namespace, name),
            query=_strict(dry_run=dry_run),
            body=patch,
            content_type="application/merge-patch+json",
        )

    def watch(
        self,
        kind: ResourceType,
        *,
        resource_version: str,
        labels: Mapping[str, str] | None = None,
        seconds: int = WATCH_SECONDS,
    ) -> Iterator[WatchEvent]:
        """Yield the changes after `resource_version`, until the server ends the stream.

        Raises WatchExpired if the version is too old, Unreachable if the stream has no data for longer than the
        server's timeout.
        """
        query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", str(seconds)),
            *label_selectors.query_of(labels),
        ]
        idle_seconds = float(seconds + _WATCH_GRACE_SECONDS)
        for line in self._transport.lines(kind.path(), query=query, idle_seconds=idle_seconds):
            yield self._event(kind, line)

    def proxy_get(
        self, namespace: str, pod: str, port: int, path: str, *, seconds: float = 3.0
    ) -> str:
        """Send a GET to a pod's port through the API server, for at most 16 MiB."""
        base = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}:{port}/proxy/"
        content = self._transport.request(
            "GET",
            base + path.lstrip("/"),
            accept="*/*",
            read_seconds=seconds,
            most_bytes=_MOST_PAGE_BYTES,
        )
        return content.decode("utf-8", "replace")

    def proxy_request(self, call: PodRequest) -> PodResponse:
        """Send a request to a pod through the API server. POST needs the right to `create` on `pods/proxy`, GET to
        `get`.
        """
        return self._transport.proxy_request(call)

    def pod_log(
        self,
        namespace: str,
        pod: str,
        *,
        tail_lines: int,
        limit_bytes: int | None = None,
        is_previous: bool = False,
        has_timestamps: bool = False,
    ) -> str:
        """Read the last lines of a pod's container, or of its run before the last restart. Of those lines at most
        `limit_bytes`, the first ones.
        """
        path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/log"
        query = [("tailLines", str(tail_lines))]
        query += [] if limit_bytes is None else [("limitBytes", str(limit_bytes))]
        query += [("previous", "true")] if is_previous else []
        query += [("timestamps", "true")] if has_timestamps else []
        content = self._transport.request("GET", path, query=query, accept="*/*")
        return content.decode("utf-8", "replace")

    def version(self) -> str:
        return str(self._transport.json("GET", "/version").get("gitVersion", ""))

    def groups(self) -> dict[str, list[str]]:
        """Map each API group to its served versions, the preferred one first."""
        listed = self._transport.json("GET", "/apis")
        return {
            group["name"]: api_groups.sort_versions(group) for group in listed.get("groups") or []
        }

    def resources(self, api_version: str) -> frozenset[str]:
        """Return the plurals that a group and version serves now."""
        served = self._transport.json("GET", f"/apis/{api_version}").get("resources") or []
        return frozenset(item["name"] for item in served if "/" not in item["name"])

    def may(self, attributes: Mapping[str, str]) -> bool:
        """Whether the cluster allows a verb on a group, resource, subresource and namespace."""
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": dict(attributes)},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = self._transport.json("POST", path, body=body)
        return bool((answer.get("status") or {}).get("allowed"))

    def probe_connection(self) -> list[ProbeStep]:
        return self._transport.probe_connection()

    def resource_type(self, api_version: str, kind: str) -> ResourceType:
        """Return the resource type of a kind: from the static table, or discovered once and cached."""
        known = find(api_version, kind) or self._discovered.get((api_version, kind))
        return known or self._discover(api_version, kind)

    def _discover(self, api_version: str, kind: str) -> ResourceType:
        root = "/apis/" if "/" in api_version else "/api/"
        served = self._transport.json("GET", f"{root}{api_version}").get("resources") or []
        with self._lock:
            for item in served:
                if "/" not in item["name"]:
                    self._discovered[api_version, item["kind"]] = ResourceType(
                        api_version, item["kind"], item["name"], bool(item["namespaced"])
                    )
        discovered = self._discovered.get((api_version, kind))
        if discovered is None:
            raise ObjectNotFound(f"The cluster does not serve {kind} in {api_version}.")
        return discovered

    def _event(self, kind: ResourceType, line: bytes) -> WatchEvent:
        try:
            raw = json.loads(line)
            type_, body = str(raw["type"]), raw["object"]
        except (ValueError, KeyError) as error:
            raise WatchExpired(f"the watch of {kind.plural} sent a broken line") from error
        if type_ == "ERROR":
            raise build_error(int(body.get("code") or 500), json.dumps(body).encode())
        version = str((body.get("metadata") or {}).get("resourceVersion", ""))
        return WatchEvent(type_, self._typed(kind, body), version)

    @staticmethod
    def _typed(kind: ResourceType, item: Json) -> Json:
        """Items of a list carry no type of their own."""
        return {"apiVersion": kind.api_version, "kind": kind.kind} | item


def _strict(*, dry_run: bool) -> list[tuple[str, str]]:
    query = [("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict")]
    return [*query, ("dryRun", "All")] if dry_run else query
