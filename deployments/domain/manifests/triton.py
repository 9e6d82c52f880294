"""A revision as a plain Triton Deployment with its Service and disruption budget."""

from __future__ import annotations

from typing import Any

from deployments.domain.manifests.parts import (
    S3_CREDENTIALS,
    SERVICE_ACCOUNT,
    WORKLOAD_LABEL,
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

API_VERSION = "apps/v1"
KIND = "Deployment"
_MODELS = "/mnt/models"
# Longer than Triton's own exit timeout, so that requests under way are answered.
_GRACE_SECONDS = 35


def deployment(place: Place, served: Served) -> Manifest:
    name = workload_name(place.deployment, served.number)
    labels = pod_labels_of(place, served)
    return with_digest(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": metadata(place, name, served, version_annotations(served)),
            "spec": {
                "replicas": served.spec.min_replicas,
                "progressDeadlineSeconds": 1800,
                "selector": {"matchLabels": {WORKLOAD_LABEL: name}},
                # A surge would need a spare GPU, which a node with one GPU does not have.
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
                },
                "template": {
                    "metadata": {"labels": labels, "annotations": version_annotations(served)},
                    "spec": _pod(place, served),
                },
            },
        }
    )


def service(place: Place, served: Served) -> Manifest:
    name = workload_name(place.deployment, served.number)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(place, name, served),
        "spec": {
            "selector": {WORKLOAD_LABEL: name},
            "ports": [
                {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"},
                {"name": "grpc", "port": 9000, "targetPort": 9000, "protocol": "TCP"},
                {"name": "metrics", "port": 8002, "targetPort": 8002, "protocol": "TCP"},
            ],
        },
    }


def disruption_budget(place: Place, served: Served) -> Manifest:
    """One pod at a time; never a budget that would block draining a node for ever."""
    name = workload_name(place.deployment, served.number)
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(place, name, served),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {WORKLOAD_LABEL: name}}},
    }


def _pod(place: Place, served: Served) -> dict[str, Any]:
    models = {"name": "models", "mountPath": _MODELS}
    return {
        "serviceAccountName": SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        **placement_of(served.spec),
        "initContainers": [_storage_initializer(place, served, models)],
        "containers": [_server(place, served, models)],
        "volumes": [
            {"name": "models", "emptyDir": {}},
            # Triton's Python backend talks to its stubs through shared memory.
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
    }


def _storage_initializer(place: Place, served: Served, mount: dict[str, Any]) -> dict[str, Any]:
    amounts = {"cpu": "1", "memory": "1Gi"}
    made = {
        "name": "storage-initializer",
        "image": place.storage_image,
        "args": [served.storage_uri, _MODELS],
        "env": _storage_env(place),
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "securityContext": _security(),
        "volumeMounts": [mount],
    }
    if place.is_local_cluster:
        made["envFrom"] = [{"secretRef": {"name": S3_CREDENTIALS}}]
    return made


def _storage_env(place: Place) -> list[dict[str, str]]:
    found = {"AWS_DEFAULT_REGION": place.s3_region}
    if place.s3_endpoint:
        found["AWS_ENDPOINT_URL"] = place.s3_endpoint
        found["S3_USE_HTTPS"] = "1" if place.s3_endpoint.startswith("https://") else "0"
    return [{"name": name, "value": value} for name, value in sorted(found.items()) if value]


def _server(place: Place, served: Served, mount: dict[str, Any]) -> dict[str, Any]:
    ports = (("http", 8080), ("grpc", 9000), ("metrics", 8002))
    return {
        "name": "tritonserver",
        "image": served.spec.image or place.triton_image,
        "args": [
            "tritonserver",
            f"--model-repository={_MODELS}",
            "--http-port=8080",
            "--grpc-port=9000",
            "--metrics-port=8002",
            "--exit-timeout-secs=20",
        ],
        "env": env_of(served.spec),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        "startupProbe": _probe("/v2/health/live", failureThreshold=360, periodSeconds=5),
        "livenessProbe": _probe("/v2/health/live", failureThreshold=3, periodSeconds=10),
        "readinessProbe": _probe("/v2/health/ready", failureThreshold=3, periodSeconds=5),
        "resources": resources_of(served.spec),
        "securityContext": _security(),
        "volumeMounts": [
            {**mount, "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108  a mount point inside the pod
        ],
    }


def _probe(path: str, **numbers: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": 8080}, **numbers}


def _security() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 1000,
    }
