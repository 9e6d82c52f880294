"""A revision as KServe's LLMInferenceService: vLLM as its presets start it, on one node or, with copies
of the model on each, on several (a LeaderWorkerSet).

Routing stays the portal's own: KServe makes the workload, its Service and, where requests are routed by
prefix cache, an InferencePool with its endpoint picker, but no route.
"""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain import pod_placement, pod_template, termination, vllm
from deployments.manifests.domain.metadata import (
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
from deployments.spec.domain.kubernetes_names import workload_name
from deployments.spec.domain.serving_spec import Llm

API_VERSION: Final = "serving.kserve.io/v1alpha1"
KIND: Final = "LLMInferenceService"


def llm_inference_service(context: ManifestContext, served: ServedRevision) -> Manifest:
    spec, llm = served.spec, served.spec.llm or Llm()
    name = workload_name(context.deployment, served.number)
    pods = pod_placement.place(context, served)
    fields: dict[str, Any] = {
        "model": {"uri": vllm.weights_uri(served, llm), "name": served.model_name},
        "labels": pods.labels,
        "replicas": spec.min_replicas,
        "parallelism": _parallelism(llm),
        "template": _pod(context, served, llm, pods),
    }
    if annotations := pods.annotations:
        fields["annotations"] = annotations
    if llm.nodes > 1:
        fields["worker"] = _pod(context, served, llm, pods)
    if download.is_in_pod(served):
        fields["storageInitializer"] = {"enabled": False}
    if llm.prefix_routing:
        fields["router"] = {"scheduler": {}}
    # A LeaderWorkerSet is queued by group only with the label of its own, which KServe copies from here.
    meta = metadata(context, name, served, version_annotations(served))
    meta["labels"] |= pods.workload_labels
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": meta,
        "spec": fields,
    }


def _parallelism(llm: Llm) -> dict[str, int]:
    if llm.nodes == 1:
        return {"tensor": llm.tensor_parallel}
    return {
        "tensor": llm.tensor_parallel,
        "data": llm.data_parallel * llm.nodes,
        "dataLocal": llm.data_parallel,
    }


def _options(served: ServedRevision, llm: Llm) -> list[str]:
    """Return vLLM's arguments beside those of the preset. Presets for one node read parallelism.tensor from
    KServe 0.20 only, and parallelism.data not at all; those for several nodes read both.
    """
    parallel = vllm.parallel_args(llm) if llm.nodes == 1 else []
    return [*parallel, *vllm.engine_args(served.spec, llm)]


def _security(llm: Llm) -> dict[str, Any]:
    """Return the security context. The preset for several nodes adds capabilities that Pod Security
    *restricted* refuses. An empty list does not replace theirs when KServe merges both, and this capability
    is the only one it admits.
    """
    fields = pod_template.security()
    if llm.nodes > 1:
        fields["capabilities"] = {**fields["capabilities"], "add": ["NET_BIND_SERVICE"]}
    return fields


def _pod(
    context: ManifestContext, served: ServedRevision, llm: Llm, pods: PlacedPods
) -> dict[str, Any]:
    """Return the pod's fields, which are laid over KServe's preset. That holds the image, the command and the
    probes, and from KServe 0.19 it also computes vLLM's drain from the grace that is set here.
    """
    volume, mount = pod_template.shared_memory(served.spec)
    arguments = {"name": "VLLM_ADDITIONAL_ARGS", "value": " ".join(_options(served, llm))}
    container: dict[str, Any] = {
        "name": "main",
        "env": [
            *env_of(served.spec),
            arguments,
            # The preset sets HOME, to a volume of its own.
            pod_template.user_env(),
            pod_template.hugging_face_env(served),
        ],
        "resources": pods.resources,
        "securityContext": _security(llm),
        "volumeMounts": [mount],
    }
    if served.spec.image:
        container["image"] = served.spec.image
    pod: dict[str, Any] = {
        "serviceAccountName": account_of(served),
        "terminationGracePeriodSeconds": termination.grace_seconds(served.spec),
        **pod_template.restrict_pod(served.spec),
        **pods.fields,
        "containers": [container],
        "volumes": [volume],
    }
    if download.is_in_pod(served):
        container["volumeMounts"].append(download.server_mount(served))
        pod["initContainers"] = download.containers(context, served)
        pod["volumes"] += [pod_template.scratch()[0], download.volume(served)]
    return pod
