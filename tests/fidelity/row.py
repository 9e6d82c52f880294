"""One row of the table: an object, and how it is sent."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Path = tuple[str | int, ...]

PLURALS: Mapping[tuple[str, str], str] = {
    ("v1", "ConfigMap"): "configmaps",
    ("v1", "LimitRange"): "limitranges",
    ("v1", "Namespace"): "namespaces",
    ("v1", "PersistentVolumeClaim"): "persistentvolumeclaims",
    ("v1", "Pod"): "pods",
    ("v1", "ResourceQuota"): "resourcequotas",
    ("v1", "Secret"): "secrets",
    ("v1", "Service"): "services",
    ("v1", "ServiceAccount"): "serviceaccounts",
    ("apps/v1", "Deployment"): "deployments",
    ("batch/v1", "Job"): "jobs",
    ("autoscaling/v2", "HorizontalPodAutoscaler"): "horizontalpodautoscalers",
    ("gateway.networking.k8s.io/v1", "GRPCRoute"): "grpcroutes",
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): "httproutes",
    ("keda.sh/v1alpha1", "ScaledObject"): "scaledobjects",
    ("monitoring.coreos.com/v1", "ServiceMonitor"): "servicemonitors",
    ("networking.k8s.io/v1", "NetworkPolicy"): "networkpolicies",
    ("policy/v1", "PodDisruptionBudget"): "poddisruptionbudgets",
    ("serving.kserve.io/v1alpha1", "ServingRuntime"): "servingruntimes",
    ("serving.kserve.io/v1alpha2", "LLMInferenceService"): "llminferenceservices",
    ("serving.kserve.io/v1beta1", "InferenceService"): "inferenceservices",
}
_REMOVED = object()


@dataclass(frozen=True, slots=True)
class Row:
    """`is_created`: by POST, not by server-side apply."""

    name: str
    manifest: Mapping[str, Any]
    is_created: bool = False

    @property
    def collection(self) -> str:
        """The path of the collection, with a place for the namespace."""
        api_version = self.manifest["apiVersion"]
        kind = self.manifest["kind"]
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        scope = "" if kind == "Namespace" else "/namespaces/{namespace}"
        return f"{root}{scope}/{PLURALS[api_version, kind]}"


class Rows:
    """Collects rows: good objects, and the same with one fault each."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def good(self, name: str, manifest: Json, *, is_created: bool = False) -> None:
        self._rows.append(Row(name, manifest, is_created))

    def changed(
        self, name: str, base: Json, *changes: tuple[Path, Any], is_created: bool = False
    ) -> None:
        """The base with values at paths replaced; `removed` takes one away."""
        manifest = copy.deepcopy(base)
        for path, value in changes:
            set_at(manifest, path, value)
        self._rows.append(Row(name, manifest, is_created))


def removed(*path: str | int) -> tuple[Path, Any]:
    return path, _REMOVED


def set_at(manifest: Json, path: Path, value: Any) -> None:
    target: Any = manifest
    for step in path[:-1]:
        target = target[step]
    if value is _REMOVED:
        del target[path[-1]]
    else:
        target[path[-1]] = value
