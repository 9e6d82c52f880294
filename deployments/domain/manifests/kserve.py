"""A revision as a KServe InferenceService in Standard mode.

The canary fields of InferenceService are not used: in this mode released versions accept them and
split no traffic. Each revision is its own InferenceService; the portal's route splits.
"""

from __future__ import annotations

from typing import Any

from deployments.domain.manifests.parts import (
    RUNTIME,
    SERVICE_ACCOUNT,
    Manifest,
    Place,
    Served,
    env_of,
    metadata,
    placement_of,
    pod_labels_of,
    resources_of,
    version_annotations,
    with_digest,
)
from deployments.domain.names import workload_name

API_VERSION = "serving.kserve.io/v1beta1"
KIND = "InferenceService"


def inference_service(place: Place, served: Served) -> Manifest:
    spec = served.spec
    is_fixed = spec.min_replicas == spec.max_replicas
    annotations = {
        **version_annotations(served),
        "serving.kserve.io/deploymentMode": "Standard",
        "serving.kserve.io/autoscalerClass": "none" if is_fixed else "hpa",
    }
    name = workload_name(place.deployment, served.number)
    return with_digest(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": metadata(place, name, served, annotations),
            "spec": {"predictor": _predictor(place, served)},
        }
    )


def _predictor(place: Place, served: Served) -> dict[str, Any]:
    spec = served.spec
    return {
        "labels": pod_labels_of(place, served),
        "serviceAccountName": SERVICE_ACCOUNT,
        "minReplicas": spec.min_replicas,
        "maxReplicas": spec.max_replicas,
        # A surge would need a spare GPU, which a node with one GPU does not have.
        "deploymentStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        },
        **placement_of(spec),
        "model": {
            # Written out because the published schema demands it; the webhook adds it anyway.
            "name": "",
            "modelFormat": {"name": "triton", "version": "2"},
            "runtime": RUNTIME,
            "protocolVersion": "v2",
            "storageUri": served.storage_uri,
            "image": served.spec.image or place.triton_image,
            "env": env_of(spec),
            "ports": [
                {"name": "http1", "containerPort": 8080, "protocol": "TCP"},
                {"name": "metrics", "containerPort": 8002, "protocol": "TCP"},
            ],
            "readinessProbe": {
                "httpGet": {"path": "/v2/health/ready", "port": 8080},
                "periodSeconds": 5,
            },
            "resources": resources_of(spec),
        },
    }
