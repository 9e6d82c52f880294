"""A cluster in memory, at the gateway's Protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fleet.kube.domain.errors import ClusterError, NotAllowed, ObjectNotFound
from fleet.kube.domain.resource_types import Manifest, ResourceType, find
from fleet.kube.gateways.connection_probe import ProbeStep
from fleet.kube.gateways.kube_client import Listing, WatchEvent


class FakeKube:
    """Set `broken` to make every call raise it."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.applied: list[tuple[str, bool]] = []
        self.pages: dict[str, str | ClusterError] = {}
        # Namespace, pod, port and path of each request to a pod.
        self.proxied: list[tuple[str, str, int, str]] = []
        self.broken: ClusterError | None = None
        self.revision = 100
        self.api_groups: dict[str, list[str]] = {
            "serving.kserve.io": ["v1beta1"],
            "gateway.networking.k8s.io": ["v1"],
        }
        self.served: dict[str, list[str]] = {}
        self.allows: Callable[[Mapping[str, str]], bool] = lambda _attributes: True
        self.way = [ProbeStep("Port answers", ok=True, detail="port 443 accepts connections")]
        # Kinds that may not be read, as the plural.
        self.forbidden: set[str] = set()
        self.on_list: Callable[[], None] = lambda: None
        # Kind, name and body of each merge patch; namespace and name of each evicted pod.
        self.patched: list[tuple[str, str, dict[str, Any]]] = []
        self.evicted: list[tuple[str, str]] = []
        # What the cluster says of an object of the kind, as the kind.
        self.invalid: dict[str, ClusterError] = {}
        # Why a pod is not evicted, and what is raised after an eviction was stored.
        self.held: dict[tuple[str, str], ClusterError] = {}
        self.on_evict: list[BaseException] = []

    def put(self, *items: Mapping[str, Any]) -> None:
        for item in items:
            metadata = item["metadata"]
            self.objects[item["kind"], metadata.get("namespace", ""), metadata["name"]] = dict(item)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        del self.objects[kind, namespace, name]

    def _check(self, kind: ResourceType | None = None) -> None:
        if self.broken:
            raise self.broken
        if kind and kind.plural in self.forbidden:
            raise NotAllowed(f"{kind.plural} is forbidden")

    def apply(
        self,
        manifest: Manifest,
        *,
        dry_run: bool = False,
        force: bool = False,
        on_warning: Callable[[str], None] | None = None,
    ) -> dict[str, Any]:
        self._check()
        if str(manifest["kind"]) in self.invalid:
            raise self.invalid[str(manifest["kind"])]
        self.applied.append((str(manifest["kind"]), dry_run))
        if not dry_run:
            self.put(manifest)
        return dict(manifest)

    def get(self, kind: ResourceType, namespace: str | None, name: str) -> dict[str, Any]:
        self._check(kind)
        try:
            return self.objects[kind.kind, namespace or "", name]
        except KeyError as error:
            raise ObjectNotFound(f"{kind.plural} {name} not found") from error

    def list_all(
        self,
        kind: ResourceType,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: str = "",
    ) -> Listing:
        self._check(kind)
        node = fields.removeprefix("spec.nodeName=")
        items = [
            item
            for (stored, in_namespace, _), item in self.objects.items()
            if stored == kind.kind
            and namespace in (None, in_namespace)
            and (labels or {}).items() <= (item["metadata"].get("labels") or {}).items()
            and (not node or (item.get("spec") or {}).get("nodeName") == node)
        ]
        self.on_list()
        return Listing(items, str(self.revision))

    def delete(self, kind: ResourceType, namespace: str | None, name: str) -> None:
        self.get(kind, namespace, name)
        self.remove(kind.kind, namespace or "", name)

    def evict(self, namespace: str, pod: str, *, uid: str) -> None:
        self._check()
        kept = self.objects.get(("Pod", namespace, pod))
        if kept is None or kept["metadata"]["uid"] != uid:
            raise ObjectNotFound(f"pods {pod} not found")
        if (namespace, pod) in self.held:
            raise self.held[namespace, pod]
        self.evicted.append((namespace, pod))
        self.remove("Pod", namespace, pod)
        if self.on_evict:
            raise self.on_evict.pop()

    def merge_patch(
        self,
        kind: ResourceType,
        namespace: str | None,
        name: str,
        patch: Manifest,
        *,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        current = self.get(kind, namespace, name)
        if kind.kind in self.invalid:
            raise self.invalid[kind.kind]
        if dry_run:
            return _merged(current, patch)
        self.patched.append((kind.kind, name, dict(patch)))
        current.update(_merged(current, patch))
        return current

    def watch(
        self,
        kind: ResourceType,
        *,
        resource_version: str,
        labels: Mapping[str, str] | None = None,
        seconds: int = 50,
    ) -> Iterator[WatchEvent]:
        self._check()
        return iter(())

    def proxy_get(
        self, namespace: str, pod: str, port: int, path: str, *, seconds: float = 3.0
    ) -> str:
        self._check()
        self.proxied.append((namespace, pod, port, path))
        page = self.pages.get(pod, ObjectNotFound(pod))
        if isinstance(page, ClusterError):
            raise page
        return page

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
        self._check()
        return f"log of {namespace}/{pod}"

    def version(self) -> str:
        self._check()
        return "v1.36.2"

    def groups(self) -> dict[str, list[str]]:
        self._check()
        return self.api_groups

    def resources(self, api_version: str) -> frozenset[str]:
        self._check()
        return frozenset(self.served.get(api_version, ()))

    def may(self, attributes: Mapping[str, str]) -> bool:
        self._check()
        return self.allows(attributes)

    def probe_connection(self) -> list[ProbeStep]:
        return self.way

    def resource_type(self, api_version: str, kind: str) -> ResourceType:
        resource = find(api_version, kind)
        if resource is None:
            raise ObjectNotFound(f"{kind} in {api_version} is not served")
        return resource


def _merged(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = _merged(merged.get(key) or {}, value)
        else:
            merged[key] = value
    return merged
