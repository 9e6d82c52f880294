"""A revision as a KServe InferenceService: Triton, vLLM, SGLang or TensorRT-LLM, in Standard or Knative mode.

The canary fields of InferenceService are not used: in Standard mode released versions accept them
and split no traffic. Each revision is its own InferenceService; the portal's route splits.
"""

from __future__ import annotations

from typing import Any

from deployments.manifests.domain import (
    autoscaling,
    pod_placement,
    pod_template,
    sglang,
    tensorrt_llm,
    termination,
    triton_args,
    vllm,
)
from deployments.manifests.domain.metadata import (
    DIGEST_ANNOTATION,
    RUNTIME,
    Manifest,
    ManifestContext,
    ServedRevision,
    account_of,
    env_of,
    metadata,
    secret_annotations,
    version_annotations,
)
from deployments.manifests.domain.model_files import download
from deployments.manifests.domain.pod_placement import PlacedPods
from deployments.spec.domain import serving_spec
from deployments.spec.domain.kubernetes_names import workload_name
from deployments.spec.domain.serving_spec import ServingSpec

API_VERSION = "serving.kserve.io/v1beta1"
KIND = "InferenceService"
# In Standard mode KServe then publishes neither stable nor candidate at an address of its own, which
# would go around the weights, and does not wait for an ingress that nothing needs.
_CLUSTER_LOCAL = {"networking.kserve.io/visibility": "cluster-local"}
# KServe copies annotations of the InferenceService into the pod template, where a new digest would replace all pods each
# time the number of replicas changes. Those of the predictor win.
_DIGEST_OF_PODS = {DIGEST_ANNOTATION: "on the InferenceService"}
# The longest that Knative keeps the last pod.
_MAX_RETENTION_SECONDS = 3600


def inference_service(context: ManifestContext, served: ServedRevision) -> Manifest:
    name = workload_name(context.deployment, served.number)
    annotations = {
        **version_annotations(served),
        **({} if download.is_in_pod(served) else secret_annotations(served)),
        **_mode_annotations(served),
    }
    fields = metadata(context, name, served, annotations)
    if served.spec.scaling.kind != serving_spec.KNATIVE:
        fields["labels"] |= _CLUSTER_LOCAL
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": fields,
        "spec": {"predictor": _predictor(context, served)},
    }


def _mode_annotations(served: ServedRevision) -> dict[str, str]:
    scaling = served.spec.scaling
    if scaling.kind != serving_spec.KNATIVE:
        # KServe's own ScaledObject supports no schedule, no job queue and no cooldown, and its HPA no
        # queue: then the portal writes them, and KServe does not set the number.
        scaler = {
            serving_spec.FIXED: "none",
            serving_spec.HPA: "external" if autoscaling.is_own_hpa(served.spec) else "hpa",
            serving_spec.KEDA: "external",
        }[scaling.kind]
        return {
            "serving.kserve.io/deploymentMode": "Standard",
            "serving.kserve.io/autoscalerClass": scaler,
        }
    retention = min(scaling.cooldown_seconds, _MAX_RETENTION_SECONDS)
    return {
        "serving.kserve.io/deploymentMode": "Knative",
        "autoscaling.knative.dev/scale-to-zero-pod-retention-period": f"{retention}s",
        "serving.knative.dev/progress-deadline": f"{pod_template.progress_seconds(served)}s",
    }


def _predictor(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    spec, pods = served.spec, pod_placement.place(context, served)
    fields = {
        "labels": pods.labels,
        "annotations": {**_DIGEST_OF_PODS, **pods.annotations},
        "serviceAccountName": account_of(served),
        **_replicas(spec),
        **pod_template.restrict_pod(spec),
        **pods.fields,
        "model": _model(context, served, pods),
        "volumes": _volumes(served),
    }
    if spec.scaling.kind != serving_spec.KNATIVE:
        fields["deploymentStrategy"] = pod_template.rolling_update()
    if download.is_in_pod(served):
        fields["initContainers"] = download.containers(context, served)
    if spec.scaling.kind != serving_spec.KNATIVE:
        fields["terminationGracePeriodSeconds"] = termination.grace_seconds(spec)
    elif request_seconds := termination.knative_request_seconds(spec):
        fields["timeout"] = request_seconds
    if spec.nodes > 1:
        fields["workerSpec"] = vllm.workers(served, pods)
    return fields


def _volumes(served: ServedRevision) -> list[dict[str, Any]]:
    has_download = download.is_in_pod(served)
    volumes = [pod_template.shared_memory(served.spec)[0]]
    if has_download or served.spec.llm is None:
        volumes.append(pod_template.scratch()[0])
    return [*volumes, download.volume(served)] if has_download else volumes


def _replicas(spec: ServingSpec) -> dict[str, Any]:
    """Return the fields for replicas and scaling. KServe starts with these numbers where the portal's own
    autoscaler decides.
    """
    least = spec.floor_replicas if spec.scaling.kind == serving_spec.KNATIVE else spec.min_replicas
    fields: dict[str, Any] = {"minReplicas": least, "maxReplicas": spec.max_replicas}
    is_hpa = spec.scaling.kind == serving_spec.HPA and not autoscaling.is_own_hpa(spec)
    if is_hpa or spec.scaling.kind == serving_spec.KNATIVE:
        fields |= {"scaleMetric": spec.scaling.metric, "scaleTarget": spec.scaling.target}
    return fields


def _model(context: ManifestContext, served: ServedRevision, pods: PlacedPods) -> dict[str, Any]:
    spec = served.spec
    model = _MODELS[spec.engine](context, served)
    fields = {
        # The published schema requires it; the webhook would add it anyway.
        "name": "",
        **model,
        "resources": pods.resources,
    }
    mounts = [pod_template.shared_memory(spec)[1], *fields.get("volumeMounts", [])]
    if download.is_in_pod(served):
        mounts.append(download.server_mount(served))
    fields["volumeMounts"] = mounts
    if spec.scaling.kind == serving_spec.KNATIVE:
        # Knative takes one port, and starts and stops pods itself.
        fields["ports"] = fields["ports"][:1]
    else:
        fields["lifecycle"] = termination.lifecycle(served, fields.get("image", ""))
    return fields


def _triton_model(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    _, scratch, home = pod_template.scratch()
    fields = {
        "modelFormat": {"name": "triton", "version": "2"},
        "runtime": RUNTIME,
        "protocolVersion": "v2",
        # Without it KServe adds its multi-model agent and starts Triton without models (ADR 30).
        "storageUri": served.storage_uri,
        "image": served.spec.image or context.triton_image,
        "env": [*env_of(served.spec), home],
        "securityContext": pod_template.security(is_read_only=True),
        "volumeMounts": [scratch],
        "ports": [
            {"name": "http1", "containerPort": 8080, "protocol": "TCP"},
            # KServe marks the port of this name as HTTP/2 without TLS.
            {"name": "grpc", "containerPort": 9000, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 8002, "protocol": "TCP"},
        ],
        **_probes(served, ready="/v2/health/ready", live="/v2/health/live"),
    }
    settings = triton_args.settings_of(served)
    return {**fields, "args": settings} if settings else fields


def _vllm_model(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    fields = vllm.model(context, served)
    if served.spec.nodes > 1:
        # The runtime for several nodes defines its own command and probes.
        return fields
    return {**fields, **_probes(served, ready="/v1/models", live="/health")}


_MODELS = {
    serving_spec.KSERVE_TRITON: _triton_model,
    serving_spec.KSERVE_VLLM: _vllm_model,
    serving_spec.KSERVE_SGLANG: sglang.model,
    serving_spec.KSERVE_TENSORRT_LLM: tensorrt_llm.model,
}


def _probes(served: ServedRevision, *, ready: str, live: str) -> dict[str, Any]:
    if served.spec.scaling.kind == serving_spec.KNATIVE:
        return {"readinessProbe": pod_template.get(ready, periodSeconds=5)}
    return pod_template.probes(served, ready=ready, live=live)
