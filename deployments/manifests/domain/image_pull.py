"""A DaemonSet that keeps a revision's images on the nodes that may run it.

A pod that an autoscaler adds to a node of the team then starts without a pull. On a node that joins
both start to pull at once: that is what the node's own settings are for (docs/model-start.md).
"""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain import pod_placement, pod_template
from deployments.manifests.domain.metadata import (
    MANAGED_BY,
    Manifest,
    ManifestContext,
    ServedRevision,
    account_of,
    metadata,
)
from deployments.spec.domain.engines import KSERVE_SGLANG, KSERVE_TENSORRT_LLM, KSERVE_VLLM
from deployments.spec.domain.kubernetes_names import workload_name

# Its pods carry no label of a deployment: they are none of the revision's.
_LABEL: Final = "slipway.dev/images-of"
_AMOUNTS: Final = {"cpu": "10m", "memory": "16Mi"}


def daemon_set(context: ManifestContext, served: ServedRevision) -> Manifest:
    """Return the DaemonSet that pulls the images. It requests no GPU, so nodes with all GPUs in use take its
    pods too.
    """
    workload = workload_name(context.deployment, served.number)
    labels = {_LABEL: workload}
    images = {"server": _server_image(context, served), "download": context.storage_image}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(context, f"{workload}-images", served),
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": {**MANAGED_BY, "slipway.dev/team": context.team, **labels}},
                "spec": {
                    # Whose pull secrets the revision's pods use.
                    "serviceAccountName": account_of(served),
                    "terminationGracePeriodSeconds": 1,
                    **pod_template.restrict_pod(served.spec),
                    **pod_placement.place(context, served).node_fields,
                    "containers": [_container(name, image) for name, image in images.items()],
                },
            },
        },
    }


def _server_image(context: ManifestContext, served: ServedRevision) -> str:
    others = {
        KSERVE_VLLM: context.vllm_image,
        KSERVE_SGLANG: context.sglang_image,
        KSERVE_TENSORRT_LLM: context.tensorrt_llm_image,
    }
    return served.spec.image or others.get(served.spec.engine, context.triton_image)


def _container(name: str, image: str) -> dict[str, Any]:
    """Return a container that only exists: an image that a container uses is never removed from its node."""
    return {
        "name": name,
        "image": image,
        "command": ["sleep", "infinity"],
        # Triton's image requests all GPUs of the node from runtimes that honour images.
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
        "resources": {"requests": dict(_AMOUNTS), "limits": dict(_AMOUNTS)},
        "securityContext": pod_template.security(is_read_only=True),
    }
