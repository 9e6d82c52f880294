"""Objects that exist before a change is tried."""

from __future__ import annotations

from typing import Any

from tests.fidelity.row import Json


def _object(api_version: str, kind: str, **fields: Any) -> Json:
    metadata = {"name": "fidelity", "labels": {"app": "fidelity"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


_LABELS = {"app": "fidelity"}
_CONTAINER = {"name": "server", "image": "nginx:1"}
DEPLOYMENT = _object(
    "apps/v1",
    "Deployment",
    spec={
        "replicas": 0,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": [_CONTAINER]}},
    },
)
# Suspended from the start, it would take other templates.
JOB = _object(
    "batch/v1",
    "Job",
    spec={
        "parallelism": 0,
        "completions": 3,
        "backoffLimit": 1,
        "template": {
            "metadata": {"labels": _LABELS},
            "spec": {"containers": [_CONTAINER], "restartPolicy": "Never"},
        },
    },
)
CONFIG = _object("v1", "ConfigMap", data={"key": "dmFsdWU="})
SECRET = _object("v1", "Secret", type="Opaque", data={"key": "dmFsdWU="})
SERVICE = _object(
    "v1",
    "Service",
    spec={"selector": _LABELS, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
)
CLAIM = _object(
    "v1",
    "PersistentVolumeClaim",
    spec={
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "none",
        "resources": {"requests": {"storage": "100Gi"}},
    },
)
QUOTA = _object("v1", "ResourceQuota", spec={"hard": {"pods": "4"}})
POD = _object("v1", "Pod", spec={"containers": [_CONTAINER]})
ROUTE = _object(
    "gateway.networking.k8s.io/v1",
    "HTTPRoute",
    spec={
        "parentRefs": [{"name": "slipway", "namespace": "slipway-gateway"}],
        "rules": [{"backendRefs": [{"name": "fidelity", "port": 80}]}],
    },
)
BUDGET = _object(
    "policy/v1",
    "PodDisruptionBudget",
    spec={"maxUnavailable": 1, "selector": {"matchLabels": _LABELS}},
)
AUTOSCALER = _object(
    "autoscaling/v2",
    "HorizontalPodAutoscaler",
    spec={
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "fidelity"},
        "minReplicas": 1,
        "maxReplicas": 4,
    },
)
POLICY = _object(
    "networking.k8s.io/v1",
    "NetworkPolicy",
    spec={"podSelector": {"matchLabels": _LABELS}, "policyTypes": ["Ingress"]},
)
ACCOUNT = _object("v1", "ServiceAccount", automountServiceAccountToken=False)
RUNTIME = _object(
    "serving.kserve.io/v1alpha1",
    "ServingRuntime",
    spec={
        "supportedModelFormats": [{"name": "a", "version": "1"}],
        "containers": [{"name": "kserve-container", "image": "nginx:1"}],
    },
)
MODEL = _object(
    "serving.kserve.io/v1beta1",
    "InferenceService",
    spec={
        "predictor": {"model": {"modelFormat": {"name": "onnx"}, "storageUri": "s3://b/a/"}},
    },
)
MODEL["metadata"]["annotations"] = {
    "serving.kserve.io/deploymentMode": "Standard",
    "serving.kserve.io/autoscalerClass": "external",
}
