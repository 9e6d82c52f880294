"""A pipeline on the cluster: KServe's InferenceGraph, and the route that is its stable address.

Steps call the stable address of a deployment, not a Service behind it: whatever serves there, a
canary included, serves the pipeline too.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.manifests.domain import http_route as manifest_http_route
from deployments.manifests.domain import metadata
from deployments.manifests.domain.access import caller_keys
from deployments.manifests.domain.metadata import MANAGED_BY, PIPELINE_ID_LABEL, Manifest
from deployments.pipelines.domain.pipeline_spec import (
    ANYTHING,
    NodeKind,
    PipelineNode,
    PipelineSpec,
    PipelineStep,
)
from fleet.clusters.domain.capability_descriptions import PIPELINE_KEY_HEADER

API_VERSION: Final = "serving.kserve.io/v1alpha1"
KIND: Final = "InferenceGraph"
FILTER_KIND: Final = "HTTPRouteFilter"
_PIPELINE_LABEL: Final = "slipway.dev/pipeline"
# The router is a small Go program: it buffers bodies and waits for the steps.
_RESOURCES: Final = {"cpu": "500m", "memory": "256Mi"}
_TIMEOUT_SECONDS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphContext:
    """The input of a pipeline's manifests. `gateway_url` is the base of every deployment's address; pods of the
    cluster must reach it.
    """

    team: str
    namespace: str
    name: str
    pipeline_id: int
    gateway_url: str
    gateway_namespace: str
    gateway_name: str


def manifests(
    context: GraphContext, spec: PipelineSpec, paths: Mapping[str, str]
) -> tuple[Manifest, Manifest]:
    """Return the graph, then its route. `paths`: the path below the address of each deployment."""
    return inference_graph(context, spec, paths), http_route(context)


def key_filter(context: GraphContext) -> Manifest:
    """Return the filter that puts the pipeline's key on each request. What a caller sends in that header is
    overwritten: it would reach the deployments.
    """
    return {
        "apiVersion": caller_keys.API_VERSION,
        "kind": FILTER_KIND,
        "metadata": _metadata(context),
        "spec": {
            "credentialInjection": {
                "header": PIPELINE_KEY_HEADER,
                "overwrite": True,
                "credential": {"valueRef": {"name": secret_name(context.name)}},
            }
        },
    }


def secret_name(pipeline: str) -> str:
    return f"{pipeline}-pipeline-key"


def secret(context: GraphContext, key: str) -> Manifest:
    """Return the Secret with the pipeline's key. It is only applied, never shown or committed."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {**_metadata(context), "name": secret_name(context.name)},
        "data": {"credential": base64.b64encode(key.encode()).decode()},
    }


def inference_graph(
    context: GraphContext, spec: PipelineSpec, paths: Mapping[str, str]
) -> Manifest:
    manifest = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            **_metadata(context),
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
                    "steps": [
                        _step(context, node, index, paths) for index in range(len(node.steps))
                    ],
                }
                for node in spec.nodes
            },
        },
    }
    return metadata.with_digest(manifest, manifest["spec"])


def http_route(context: GraphContext, *, has_key: bool = False) -> Manifest:
    """Return the route. It is the portal's own, as a deployment's: KServe creates no entry from outside.
    `has_key`: with the filter of `key_filter`.
    """
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    filters: list[dict[str, Any]] = [{"type": "URLRewrite", "urlRewrite": rewrite}]
    if has_key:
        reference = {
            "group": caller_keys.API_VERSION.partition("/")[0],
            "kind": FILTER_KIND,
            "name": context.name,
        }
        # Deployments read keys there too, and routers may be set to pass it on.
        removed = {"remove": ["Authorization"]}
        filters += [
            {"type": "RequestHeaderModifier", "requestHeaderModifier": removed},
            {"type": "ExtensionRef", "extensionRef": reference},
        ]
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": path_prefix(context)}}],
        "filters": filters,
        "backendRefs": [{"name": context.name, "port": 80, "weight": 1}],
    }
    parent = {"name": context.gateway_name, "namespace": context.gateway_namespace}
    return {
        "apiVersion": manifest_http_route.API_VERSION,
        "kind": manifest_http_route.KIND,
        "metadata": _metadata(context),
        "spec": {"parentRefs": [parent], "rules": [rule]},
    }


def path_prefix(context: GraphContext) -> str:
    return f"/{context.namespace}/{context.name}"


def _metadata(context: GraphContext) -> dict[str, Any]:
    return {
        "name": context.name,
        "namespace": context.namespace,
        "labels": {
            **MANAGED_BY,
            "slipway.dev/team": context.team,
            _PIPELINE_LABEL: context.name,
            PIPELINE_ID_LABEL: str(context.pipeline_id),
        },
    }


def _step(
    context: GraphContext, node: PipelineNode, index: int, paths: Mapping[str, str]
) -> dict[str, Any]:
    step = node.steps[index]
    rendered: dict[str, Any] = {
        "name": step.label,
        "dependency": "Hard" if step.is_required else "Soft",
        **_target(context, step, paths),
    }
    if node.kind == NodeKind.SPLITTER:
        rendered["weight"] = step.weight
    elif node.kind == NodeKind.SEQUENCE:
        rendered["data"] = "$request"
    condition = step.condition or (ANYTHING if node.kind == NodeKind.SWITCH else "")
    return {**rendered, "condition": condition} if condition else rendered


def _target(context: GraphContext, step: PipelineStep, paths: Mapping[str, str]) -> dict[str, str]:
    if step.node:
        return {"nodeName": step.node}
    address = f"{context.gateway_url}/{context.namespace}/{step.deployment}"
    return {"serviceUrl": f"{address}/{paths[step.deployment]}"}
