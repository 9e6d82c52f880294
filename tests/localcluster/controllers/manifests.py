"""Minimal manifests, in the form that the portal writes."""

from typing import Any

Manifest = dict[str, Any]

GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def namespace(name: str = "vision") -> Manifest:
    return {"metadata": {"name": name}}


def runtime(**spec: Any) -> Manifest:
    container = {
        "name": "kserve-container",
        "image": "nvcr.io/nvidia/tritonserver:26.07-py3",
        "args": [
            "tritonserver",
            "--model-repository=/mnt/models",
            "--http-port=8080",
            "--grpc-port=9000",
            "--metrics-port=8002",
        ],
        "ports": [{"name": "http1", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
    }
    return {
        "metadata": {"name": "slipway-triton", "namespace": "vision"},
        "spec": {
            "supportedModelFormats": [{"name": "onnx", "version": "1", "autoSelect": True}],
            "protocolVersions": ["v2"],
            "containers": [container],
            **spec,
        },
    }


def service(name: str, uri: str, *, gpus: int = 1, replicas: int = 1, **model: Any) -> Manifest:
    amounts = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {
            "name": name,
            "namespace": "vision",
            "annotations": {"serving.kserve.io/deploymentMode": "Standard"},
        },
        "spec": {
            "predictor": {
                "minReplicas": replicas,
                "maxReplicas": replicas,
                "tolerations": [GPU_TOLERATION],
                "model": {
                    "modelFormat": {"name": "onnx", "version": "1"},
                    "runtime": "slipway-triton",
                    "storageUri": uri,
                    "resources": {"requests": amounts, "limits": amounts},
                    **model,
                },
            }
        },
    }


def route(weights: dict[str, int], name: str = "digits") -> Manifest:
    backends = [
        {"name": f"{service_name}-predictor", "port": 80, "weight": weight}
        for service_name, weight in weights.items()
    ]
    rewrite = {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}
    return {
        "metadata": {"name": name, "namespace": "vision"},
        "spec": {
            "parentRefs": [{"name": "slipway", "namespace": "slipway-gateway"}],
            "rules": [
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": f"/vision/{name}"}}],
                    "filters": [{"type": "URLRewrite", "urlRewrite": {"path": rewrite}}],
                    "backendRefs": backends,
                }
            ],
        },
    }


def pod(name: str = "p", **spec: Any) -> Manifest:
    container = {"name": "main", "image": "nvcr.io/nvidia/tritonserver:26.07-py3"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "vision"},
        "spec": {"containers": [container], **spec},
    }


def gpu_pod(gpus: int, *, cpu: str = "1", memory: str = "1Gi", name: str = "p") -> Manifest:
    limits = {"nvidia.com/gpu": str(gpus), "cpu": cpu, "memory": memory}
    container = {"name": "main", "image": "tritonserver", "resources": {"limits": limits}}
    return pod(name, containers=[container], tolerations=[GPU_TOLERATION])
