"""A revision as KServe's LLMInferenceService: vLLM as its presets start it, on one node.

Routing stays the portal's own, so `router` is left out: KServe then makes the workload and its Service
only.
"""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain import download, pod_template, vllm
from deployments.manifests.domain.metadata import (
    Manifest,
    ManifestContext,
    ServedRevision,
    account_of,
    env_of,
    metadata,
    pod_labels_of,
    resources_of,
    version_annotations,
)
from deployments.spec.domain.kubernetes_names import workload_name
from deployments.spec.domain.serving_spec import Llm

API_VERSION: Final = "serving.kserve.io/v1alpha1"
KIND: Final = "LLMInferenceService"


def llm_inference_service(context: ManifestContext, served: ServedRevision) -> Manifest:
    spec, llm = served.spec, served.spec.llm or Llm()
    name = workload_name(context.deployment, served.number)
    fields: dict[str, Any] = {
        "model": {"uri": vllm.weights_uri(served, llm), "name": served.model_name},
        "labels": pod_labels_of(context, served),
        "replicas": spec.min_replicas,
        "parallelism": {"tensor": llm.tensor_parallel},
        "template": _pod(context, served, llm),
    }
    if download.is_in_pod(served):
        fields["storageInitializer"] = {"enabled": False}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata(context, name, served, version_annotations(served)),
        "spec": fields,
    }


def _pod(context: ManifestContext, served: ServedRevision, llm: Llm) -> dict[str, Any]:
    """Laid over KServe's preset, which holds the image, the command and the probes."""
    volume, mount = pod_template.shared_memory(served.spec)
    # Presets before KServe 0.20 do not read parallelism.tensor; where both are there, they are equal.
    options = [f"--tensor-parallel-size={llm.tensor_parallel}", *vllm.engine_args(served.spec, llm)]
    arguments = {"name": "VLLM_ADDITIONAL_ARGS", "value": " ".join(options)}
    container: dict[str, Any] = {
        "name": "main",
        "env": [
            *env_of(served.spec),
            arguments,
            # The preset sets HOME, to a volume of its own.
            pod_template.user_env(),
            pod_template.hugging_face_env(served),
        ],
        "resources": resources_of(served.spec),
        "securityContext": pod_template.security(),
        "volumeMounts": [mount],
    }
    if served.spec.image:
        container["image"] = served.spec.image
    pod: dict[str, Any] = {
        "serviceAccountName": account_of(served),
        "terminationGracePeriodSeconds": pod_template.GRACE_SECONDS,
        **pod_template.sealed(),
        **pod_template.placement_of(context, served),
        "containers": [container],
        "volumes": [volume],
    }
    if download.is_in_pod(served):
        container["volumeMounts"].append(download.server_mount())
        pod["initContainers"] = download.containers(context, served)
        pod["volumes"] += [pod_template.scratch()[0], download.volume()]
    return pod
