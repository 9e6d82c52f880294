"""A pipeline on the cluster: KServe's InferenceGraph, and the route that is its stable address.

Steps call the stable address of a deployment, not a Service behind it: whatever serves there, a
canary included, serves the pipeline too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.manifests.domain import http_route as manifest_http_route
from deployments.manifests.domain import metadata
from deployments.manifests.domain.metadata import MANAGED_BY, PIPELINE_ID_LABEL, Manifest
from deployments.pipelines.domain.pipeline_spec import (
    ANYTHING,
    NodeKind,
    PipelineNode,
    PipelineSpec,
    PipelineStep,
)

API_VERSION: Final = "serving.kserve.io/v1alpha1"
KIND: Final = "InferenceGraph"
_PIPELINE_LABEL: Final = "slipway.dev/pipeline"
# The router is a small Go program: it buffers bodies and waits for the steps.
_RESOURCES: Final = {"cpu": "500m", "memory": "256Mi"}
_TIMEOUT_SECONDS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphContext:
    """`gateway_url` is the base of every deployment's address; pods of the cluster must reach it."""

    team: str
    namespace: str
    name: str
    pipeline_id: int
    gateway_url: str
    gateway_namespace: str
    gateway_name: str


def manifests(
    place: GraphContext, spec: PipelineSpec, paths: Mapping[str, str]
) -> tuple[Manifest, Manifest]:
    """The graph, then its route. `paths`: the path below the address of each deployment."""
    return inference_graph(place, spec, paths), http_route(place)


def inference_graph(place: GraphContext, spec: PipelineSpec, paths: Mapping[str, str]) -> Manifest:
    manifest = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            **_metadata(place),
            "annotations": {"serving.kserve.io/deploymentMode": "Standard"},
        },
        "spec": {
            "minReplicas": spec.min_replicas,
            "maxReplicas": spec.max_replicas,
            "timeout": _TIMEOUT_SECONDS,
            "resources": {"requests": dict(_RESOURCES), "limits": dict(_RESOURCES)},
            "nodes": {
                node.name: {
                    "routerType": node.kind.value.capitalize(),
                    "steps": [_step(place, node, index, paths) for index in range(len(node.steps))],
                }
                for node in spec.nodes
            },
        },
    }
    return metadata.with_digest(manifest, manifest["spec"])


def http_route(place: GraphContext) -> Manifest:
    """The portal's own, as a deployment's route: KServe creates no entry from outside."""
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": path_prefix(place)}}],
        "filters": [{"type": "URLRewrite", "urlRewrite": rewrite}],
        "backendRefs": [{"name": place.name, "port": 80, "weight": 1}],
    }
    parent = {"name": place.gateway_name, "namespace": place.gateway_namespace}
    return {
        "apiVersion": manifest_http_route.API_VERSION,
        "kind": manifest_http_route.KIND,
        "metadata": _metadata(place),
        "spec": {"parentRefs": [parent], "rules": [rule]},
    }


def path_prefix(place: GraphContext) -> str:
    return f"/{place.namespace}/{place.name}"


def _metadata(place: GraphContext) -> dict[str, Any]:
    return {
        "name": place.name,
        "namespace": place.namespace,
        "labels": {
            **MANAGED_BY,
            "slipway.dev/team": place.team,
            _PIPELINE_LABEL: place.name,
            PIPELINE_ID_LABEL: str(place.pipeline_id),
        },
    }


def _step(
    place: GraphPlace, node: PipelineNode, index: int, paths: Mapping[str, str]
) -> dict[str, Any]:
    step = node.steps[index]
    rendered: dict[str, Any] = {
        "name": step.label,
        "dependency": "Hard" if step.is_required else "Soft",
        **_target(place, step, paths),
    }
    if node.kind == NodeKind.SPLITTER:
        rendered["weight"] = step.weight
    elif node.kind == NodeKind.SEQUENCE:
        rendered["data"] = "$request"
    condition = step.condition or (ANYTHING if node.kind == NodeKind.SWITCH else "")
    return {**rendered, "condition": condition} if condition else rendered


def _target(place: GraphPlace, step: PipelineStep, paths: Mapping[str, str]) -> dict[str, str]:
    if step.node:
        return {"nodeName": step.node}
    address = f"{place.gateway_url}/{place.namespace}/{step.deployment}"
    return {"serviceUrl": f"{address}/{paths[step.deployment]}"}
