"""A cluster that keeps objects and records calls; tests say what its controllers would write."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from deployments.delivery.domain import owned_kinds
from fleet.kube.domain.errors import ClusterError, ObjectInvalid, ObjectNotFound, Unreachable
from fleet.kube.domain.pod_proxy import PodRequest, PodResponse
from fleet.kube.domain.resource_types import ResourceType, find
from fleet.kube.gateways.connection_probe import ProbeStep
from fleet.kube.gateways.kube_client import Listing


class RecordingCluster:
    """In the place of the Kubernetes client. `fail_with` makes every call raise it."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.calls: list[tuple[str, ...]] = []
        self.fail_with: ClusterError | None = None
        self.refuse: dict[str, ClusterError] = {}
        self.refuse_by_name: dict[tuple[str, str], ClusterError] = {}
        # The warning of its API server about a kind.
        self.warn: dict[str, str] = {}
        self.after_apply: list[BaseException] = []
        self._versions = 0
        self.logs: dict[str, str] = {}
        # What pods answer; without it nothing reaches them.
        self.pods: Callable[[PodRequest], PodResponse] | None = None

    # What the portal calls.

    def apply(
        self,
        manifest: Mapping[str, Any],
        *,
        dry_run: bool = False,
        force: bool = False,
        on_warning: Callable[[str], None] | None = None,
    ) -> Any:
        self._answer()
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if (kind, name) in self.refuse_by_name or kind in self.refuse:
            raise self.refuse.get(kind) or self.refuse_by_name[kind, name]
        namespace = manifest["metadata"].get("namespace", "")
        self.calls.append(("dry-run" if dry_run else "apply", kind, name))
        key = (kind, namespace, name)
        old = self.objects.get(key)
        made = copy.deepcopy(dict(manifest))
        if on_warning is not None and kind in self.warn:
            on_warning(self.warn[kind])
        if dry_run:
            return made
        generation = old["metadata"]["generation"] if old else 0
        is_changed = old is None or old.get("spec") != made.get("spec")
        made["metadata"]["generation"] = generation + is_changed
        if old and "status" in old:
            made["status"] = old["status"]
        self.objects[key] = made
        if kind == "HTTPRoute":
            self.accept_route(made)
        if self.after_apply:
            raise self.after_apply.pop()
        return made

    def get(self, kind: ResourceType, namespace: str | None, name: str) -> dict[str, Any]:
        self._answer()
        try:
            return copy.deepcopy(self.objects[kind.kind, namespace or "", name])
        except KeyError as error:
            raise ObjectNotFound(f"{kind.plural} {name} not found") from error

    def proxy_request(self, call: PodRequest) -> PodResponse:
        self._answer()
        if self.pods is None:
            raise Unreachable(f"pod {call.pod} cannot be reached")
        return self.pods(call)

    def proxy_get(
        self, namespace: str, pod: str, port: int, path: str, *, seconds: float = 3.0
    ) -> str:
        request = PodRequest(namespace, pod, port, path, seconds=seconds)
        return self.proxy_request(request).body.decode()

    def version(self) -> str:
        self._answer()
        return "v1.34.0"

    def groups(self) -> dict[str, list[str]]:
        self._answer()
        return {"gateway.networking.k8s.io": ["v1"], "serving.kserve.io": ["v1beta1"]}

    def list_all(
        self, kind: Any, *, namespace: str | None = None, labels: Any = None, fields: str = ""
    ) -> Listing:
        self._answer()
        field, _, value = fields.partition("=")
        node = value if field == "spec.nodeName" else ""
        items = [
            copy.deepcopy(item)
            for (its_kind, its_namespace, _), item in sorted(self.objects.items())
            if its_kind == kind.kind
            and namespace in (None, its_namespace)
            and _matches(item["metadata"].get("labels", {}), labels or {})
            and node in ("", (item.get("spec") or {}).get("nodeName"))
        ]
        return Listing(items=items, resource_version="1")

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
        """Logs of previous containers are under "POD previous"; tests write the timestamps that they need."""
        self._answer()
        if is_previous and f"{pod} previous" not in self.logs:
            raise ObjectInvalid(f'previous terminated container "server" in pod "{pod}" not found')
        log = self.logs.get(f"{pod} previous" if is_previous else pod, "")
        last = "".join(log.splitlines(keepends=True)[-tail_lines:])
        return last if limit_bytes is None else last[:limit_bytes]

    def delete(self, kind: ResourceType, namespace: str | None, name: str) -> None:
        self._answer()
        if (kind.kind, namespace or "", name) not in self.objects:
            raise ObjectNotFound(f"{kind.plural} {name} not found")
        self.calls.append(("delete", kind.kind, name))
        del self.objects[kind.kind, namespace or "", name]
        pods = [
            key
            for key, item in self.objects.items()
            if key[0] == "Pod" and item["metadata"]["labels"].get("slipway.dev/workload") == name
        ]
        for key in pods:
            del self.objects[key]

    def merge_patch(
        self,
        kind: ResourceType,
        namespace: str | None,
        name: str,
        patch: Mapping[str, Any],
        *,
        dry_run: bool = False,
    ) -> Any:
        """Patches of a Namespace, which each write is preceded by, are not among the calls."""
        self._answer()
        key = (kind.kind, namespace or "", name)
        if key not in self.objects:
            raise ObjectNotFound(f"{kind.plural} {name} not found")
        if kind.kind != "Namespace":
            self.calls.append(("patch", kind.kind, name))
        patched = _merged(self.objects[key], patch)
        if not dry_run:
            self.objects[key] = patched
        return copy.deepcopy(patched)

    def resource_type(self, api_version: str, kind: str) -> ResourceType:
        resource = find(api_version, kind)
        if resource is None and (api_version, kind) in owned_kinds.WORKLOADS:
            # The client discovers what it has no constant for.
            return ResourceType(api_version, kind, f"{kind.lower()}s")
        if resource is None:
            raise ObjectNotFound(f"The cluster does not serve {kind} in {api_version}.")
        return resource

    def probe_connection(self) -> list[ProbeStep]:
        return [ProbeStep("Connection", ok=True, detail="answers")]

    def may(self, attributes: Mapping[str, str]) -> bool:
        self._answer()
        return True

    def _answer(self) -> None:
        if self.fail_with is not None:
            raise self.fail_with

    # What its controllers would do.

    def accept_route(self, route: dict[str, Any]) -> None:
        generation = route["metadata"]["generation"]
        conditions = [
            {"type": kind, "status": "True", "observedGeneration": generation}
            for kind in ("Accepted", "ResolvedRefs")
        ]
        route["status"] = {"parents": [{"conditions": conditions}]}

    def make_ready(self, name: str, *, is_ready: bool = True, message: str = "") -> None:
        """The workload's pods and status as after loading, or as failing to load."""
        kind = next(k for k in self.objects if k[0] in _WORKLOADS and k[2] == name)
        workload = self.objects[kind]
        status = "True" if is_ready else "False"
        workload["status"] = {
            "observedGeneration": workload["metadata"]["generation"],
            "conditions": [
                {"type": "PredictorReady", "status": status, "message": message},
                {"type": "Available", "status": status, "message": message},
            ],
            "modelStatus": {"transitionStatus": "UpToDate" if is_ready else "InProgress"},
        }
        spec = workload["spec"]
        template = spec.get("predictor") or spec["template"]["metadata"]
        replicas = spec.get("replicas") or spec["predictor"]["minReplicas"]
        for index in range(replicas):
            self.put_pod(
                kind[1],
                f"{name}-{index}",
                template["labels"],
                {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]},
            )

    def put_pod(self, namespace: str, name: str, labels: Mapping[str, str], status: Any) -> None:
        self.objects["Pod", namespace, name] = {
            "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
            "spec": {"nodeName": "node-1"},
            "status": status,
        }

    # What tests read.

    @property
    def writes(self) -> list[tuple[str, ...]]:
        return [call for call in self.calls if call[0] != "dry-run"]

    def weights(self, namespace: str, name: str) -> dict[str, int]:
        route = self.objects["HTTPRoute", namespace, name]
        refs = route["spec"]["rules"][0]["backendRefs"]
        return {ref["name"]: ref["weight"] for ref in refs}

    def mirrors(self, namespace: str, name: str) -> dict[str, int]:
        filters = self.objects["HTTPRoute", namespace, name]["spec"]["rules"][0]["filters"]
        mirrors = [one["requestMirror"] for one in filters if one["type"] == "RequestMirror"]
        return {mirror["backendRef"]["name"]: mirror["percent"] for mirror in mirrors}

    def names(self, kind: str) -> list[str]:
        return sorted(name for its_kind, _, name in self.objects if its_kind == kind)


def _matches(labels: Mapping[str, str], expected: Mapping[str, Any]) -> bool:
    """An expected value is a text, or several of which one must match."""
    return all(
        labels.get(name) in ([value] if isinstance(value, str) else value)
        for name, value in expected.items()
    )


_WORKLOADS = ("InferenceService", "Deployment")


def _merged(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(target)
    for key, value in patch.items():
        old = merged.get(key)
        merged[key] = _merged(old or {}, value) if isinstance(value, Mapping) else value
    return merged
