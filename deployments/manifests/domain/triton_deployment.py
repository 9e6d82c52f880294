"""A revision as a plain Deployment of Triton with its Service; also Triton's vLLM backend."""

from __future__ import annotations

from typing import Any

from deployments.manifests.domain import pod_placement, pod_template, termination, triton_args
from deployments.manifests.domain.metadata import (
    WORKLOAD_LABEL,
    Manifest,
    ManifestContext,
    ServedRevision,
    account_of,
    env_of,
    metadata,
    version_annotations,
)
from deployments.manifests.domain.model_files import download
from deployments.manifests.domain.pod_placement import PlacedPods
from deployments.spec.domain import serving_spec
from deployments.spec.domain.kubernetes_names import workload_name

API_VERSION = "apps/v1"
KIND = "Deployment"
# The download cache of Hugging Face's library.
_HUGGING_FACE_HOME = "/var/cache/huggingface"


def deployment(context: ManifestContext, served: ServedRevision) -> Manifest:
    name = workload_name(context.deployment, served.number)
    pods = pod_placement.place(context, served)
    spec: dict[str, Any] = {
        "progressDeadlineSeconds": pod_template.progress_seconds(served),
        "selector": {"matchLabels": {WORKLOAD_LABEL: name}},
        "strategy": pod_template.rolling_update(),
        "template": {
            "metadata": {
                "labels": pods.labels,
                "annotations": {
                    **version_annotations(served),
                    **pods.annotations,
                },
            },
            "spec": _pod(context, served, pods),
        },
    }
    # An autoscaler owns the number: writing it too would reset it at every apply.
    if served.spec.scaling.kind == serving_spec.FIXED:
        spec["replicas"] = served.spec.min_replicas
    fields = metadata(context, name, served, version_annotations(served))
    fields["labels"] |= pods.workload_labels
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": fields,
        "spec": spec,
    }


def service(context: ManifestContext, served: ServedRevision) -> Manifest:
    name = workload_name(context.deployment, served.number)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(context, name, served),
        "spec": {
            "selector": {WORKLOAD_LABEL: name},
            "ports": [
                {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"},
                {
                    "name": "grpc",
                    "port": 9000,
                    "targetPort": 9000,
                    "protocol": "TCP",
                    "appProtocol": "kubernetes.io/h2c",
                },
                {"name": "metrics", "port": 8002, "targetPort": 8002, "protocol": "TCP"},
            ],
        },
    }


def _pod(context: ManifestContext, served: ServedRevision, pods: PlacedPods) -> dict[str, Any]:
    shm_volume, _ = pod_template.shared_memory(served.spec)
    scratch_volume, _, _ = pod_template.scratch()
    volumes: list[dict[str, Any]] = [
        download.volume(served),
        shm_volume,
        scratch_volume,
    ]
    if served.spec.engine == serving_spec.TRITON_VLLM:
        volumes.append({"name": "hugging-face", "emptyDir": {}})
    return {
        "serviceAccountName": account_of(served),
        "terminationGracePeriodSeconds": termination.grace_seconds(served.spec),
        **pod_template.restrict_pod(served.spec),
        **pods.fields,
        "initContainers": download.containers(context, served),
        "containers": [_server(context, served, pods)],
        "volumes": volumes,
    }


def _server(context: ManifestContext, served: ServedRevision, pods: PlacedPods) -> dict[str, Any]:
    ports = (("http", 8080), ("grpc", 9000), ("metrics", 8002))
    _, shm_mount = pod_template.shared_memory(served.spec)
    _, scratch, home = pod_template.scratch()
    container = {
        "name": "tritonserver",
        "image": served.spec.image or context.triton_image,
        "args": [*triton_args.command(), *triton_args.settings_of(served)],
        "env": [*env_of(served.spec), home],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        **_lifecycle(served),
        "resources": pods.resources,
        "securityContext": pod_template.security(is_read_only=True),
        "volumeMounts": [download.server_mount(served), shm_mount, scratch],
    }
    if served.spec.engine == serving_spec.TRITON_VLLM:
        container["env"] = [
            *env_of(served.spec),
            pod_template.user_env(),
            home,
            {"name": "HF_HOME", "value": _HUGGING_FACE_HOME},
            pod_template.hugging_face_env(served),
        ]
        container["volumeMounts"] += [{"name": "hugging-face", "mountPath": _HUGGING_FACE_HOME}]
    return container


def _lifecycle(served: ServedRevision) -> dict[str, Any]:
    live, ready = "/v2/health/live", "/v2/health/ready"
    return {
        **pod_template.probes(served, ready=ready, live=live),
        "lifecycle": termination.lifecycle(served, ""),
    }
