"""KServe's ServingRuntime of a language model server that answers and has its metrics on port 8080."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployments.manifests.domain import pod_template
from deployments.manifests.domain.metadata import MANAGED_BY, Manifest, ManifestContext


def serving_runtime(
    context: ManifestContext,
    *,
    name: str,
    model_format: Mapping[str, str],
    container: Mapping[str, Any],
    metrics_path: str = "/metrics",
) -> Manifest:
    """Return the ServingRuntime of a language model. `container` has what differs by server: image, command,
    arguments, environment and ports.
    """
    amounts = {"cpu": "1", "memory": "4Gi"}
    return {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ServingRuntime",
        "metadata": {
            "name": name,
            "namespace": context.namespace,
            "labels": {**MANAGED_BY, "slipway.dev/team": context.team},
        },
        "spec": {
            "annotations": {
                "prometheus.kserve.io/port": "8080",
                "prometheus.kserve.io/path": metrics_path,
            },
            "multiModel": False,
            "supportedModelFormats": [{**model_format, "autoSelect": False}],
            "protocolVersions": ["v2", "v1"],
            "containers": [
                {
                    "name": "kserve-container",
                    **container,
                    "securityContext": pod_template.security(),
                    "resources": {"requests": dict(amounts), "limits": dict(amounts)},
                }
            ],
        },
    }
