"""Objects that the API tests write."""

from slipway_localcluster.errors import JsonObject

DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"
SERVICES = "/apis/serving.kserve.io/v1beta1/namespaces/{}/inferenceservices"


def deployment(name: str, *, image: str = "nginx", replicas: int = 1) -> JsonObject:
    container = {
        "name": "web",
        "image": image,
        "env": [{"name": "A", "value": "1"}],
        "ports": [{"containerPort": 80}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }


def config_map(name: str, **data: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": name}},
        "data": data,
    }


def inference_service(name: str) -> JsonObject:
    amounts = {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "1"}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "annotations": {"serving.kserve.io/deploymentMode": "Standard"}},
        "spec": {
            "predictor": {
                "minReplicas": 1,
                "model": {
                    "modelFormat": {"name": "onnx"},
                    "runtime": "slipway-triton",
                    "storageUri": "s3://models/detector/1/",
                    "resources": {"requests": amounts, "limits": dict(amounts)},
                },
            }
        },
    }
