"""Each feature of a cluster: its purpose, what to install where it is missing, and what depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fleet.clusters.domain.kserve_releases import REQUIREMENTS

# By which the gateway passes a pipeline's key to KServe's router, in Go's spelling, and the router to the gateway.
PIPELINE_KEY_HEADER = "X-Api-Key"


@dataclass(frozen=True, slots=True)
class FeatureDescription:
    """The description of a feature for people. `gives` follows "needed for"; `install` is what an admin does when
    it is missing.
    """

    title: str
    purpose: str
    install: str
    # The fix when the feature could not be checked; empty: grant the missing permission.
    fix_unknown: str = ""


FEATURE_DESCRIPTIONS: Mapping[str, FeatureDescription] = {
    "kubernetes": FeatureDescription(
        "Kubernetes", "all deployments", "Use a version that its vendor still supports."
    ),
    "kserve": FeatureDescription(
        "KServe",
        "the KServe engines; the plain Triton engines work without it",
        f"Install KServe {REQUIREMENTS['kserve'].minimum} or newer, or use a triton engine.",
    ),
    "kserve-knative": FeatureDescription(
        "KServe in Knative mode",
        "scaling on concurrent requests, and scaling to zero without losing requests",
        "Install Knative Serving in addition to KServe.",
    ),
    "llm-inference-service": FeatureDescription(
        "LLMInferenceService",
        "serving language models with LLMInferenceService",
        f"Install KServe {REQUIREMENTS['llm-inference-service'].minimum} or newer with its LLM custom "
        "resources.",
    ),
    "inference-graph": FeatureDescription(
        "InferenceGraph",
        "pipelines of several deployments",
        f"Install KServe {REQUIREMENTS['inference-graph'].minimum} or newer with its InferenceGraph "
        "custom resource.",
    ),
    "gateway-api": FeatureDescription(
        "Gateway API",
        "stable URLs and canary rollouts",
        "Install the Gateway API and create the Gateway that the cluster is registered with.",
    ),
    "gateway-proxies": FeatureDescription(
        "Gateway access",
        "requests to reach models",
        "Add the namespace to the gateway proxy namespaces of the cluster's serving policy.",
    ),
    "gateway-metrics": FeatureDescription(
        "Counting at the gateway",
        "guards on requests that never come back",
        "Use a gateway whose proxies offer Envoy's or Istio's metrics, or register the cluster's "
        "Prometheus.",
        "Grant the portal pods/proxy in the namespace of the gateway's proxies (manage.py cluster_rbac "
        "--gateway-namespaces).",
    ),
    "pod-proxy": FeatureDescription(
        "API server access",
        "golden requests and trials",
        "Add the API server's networks (on EKS, the subnets of the cluster) to the cluster's serving "
        "policy.",
    ),
    "request-mirror": FeatureDescription(
        "Request mirroring",
        "shadow rollouts",
        "Use a gateway that supports the Gateway API feature HTTPRouteRequestPercentageMirror.",
    ),
    "caller-keys": FeatureDescription(
        "Keys at the gateway",
        "serving only callers with a key",
        "Use Envoy Gateway 1.5 or newer, or Istio 1.22 or newer, for the Gateway that the cluster is "
        "registered with.",
    ),
    "header-propagation": FeatureDescription(
        "Header propagation of KServe's router",
        "pipelines of deployments whose callers need a key",
        f'Add {PIPELINE_KEY_HEADER} to the headers that routers pass on: "headers": {{"propagate": '
        f'["{PIPELINE_KEY_HEADER}"]}} under router in ConfigMap inferenceservice-config of kserve.',
        "Allow the portal to read ConfigMap inferenceservice-config of kserve. Then test again.",
    ),
    "credential-injection": FeatureDescription(
        "Credential injection at the gateway",
        "pipelines of deployments whose callers need a key",
        "Use Envoy Gateway 1.4 or newer for the Gateway that the cluster is registered with.",
        "Allow the portal to read Deployment envoy-gateway of envoy-gateway-system (manage.py cluster_rbac). "
        "Then test again.",
    ),
    "caller-jwt": FeatureDescription(
        "Tokens of identity providers",
        "serving only callers with a token of the company's identity provider",
        "Use Envoy Gateway 1.5 or newer for the Gateway that the cluster is registered with.",
    ),
    "token-counts": FeatureDescription(
        "Counting tokens of callers",
        "limits of tokens for the keys of language models",
        "Have the gateway's access log counted as slipway_caller_tokens_total in the cluster's Prometheus.",
    ),
    "model-routing": FeatureDescription(
        "Routing by model",
        "one address for a team's language models",
        "Use Envoy Gateway 1.5 or newer, from 1.9 on with extensionApis.enableLua in its configuration. The "
        "address of each deployment still works.",
        "Allow the portal to read ConfigMap envoy-gateway-config and Deployment envoy-gateway of "
        "envoy-gateway-system (manage.py cluster_rbac). Then test again.",
    ),
    "keda": FeatureDescription(
        "KEDA",
        "scaling on queue length, on a schedule or to zero",
        "Install KEDA 2.20 or newer.",
    ),
    "scaled-jobs": FeatureDescription(
        "KEDA's ScaledJob",
        "batch jobs that drain a queue",
        "Install KEDA 2.20 or newer.",
    ),
    "karpenter": FeatureDescription(
        "Karpenter",
        "node autoscaling",
        "Install Karpenter, or keep GPU nodes in a node group.",
    ),
    "prometheus": FeatureDescription(
        "Prometheus operator",
        "scraping model metrics with a ServiceMonitor",
        "Install the Prometheus operator with its custom resources.",
    ),
    "promql": FeatureDescription(
        "Prometheus",
        "PromQL guards and latency percentiles in rollouts",
        "Register the address of the cluster's Prometheus.",
        "Check its address, its token and the network path to it. Then test again.",
    ),
    "istio": FeatureDescription(
        "Istio", "strict mTLS between pods", "Install Istio, or leave strict mTLS off."
    ),
    "local-model-cache": FeatureDescription(
        "LocalModelCache",
        "caching models on nodes with KServe",
        f"Install KServe {REQUIREMENTS['local-model-cache'].minimum} or newer with its LocalModel "
        "controller.",
    ),
    "image-weights": FeatureDescription(
        "Weights in images",
        "weights in an image (oci://)",
        "Set enableModelcar to true under storageInitializer in ConfigMap inferenceservice-config of "
        "kserve.",
        "Allow the portal to read ConfigMap inferenceservice-config of kserve. Then test again.",
    ),
    "leader-worker-set": FeatureDescription(
        "LeaderWorkerSet",
        "replicas of an LLMInferenceService over several nodes",
        "Install the LeaderWorkerSet controller.",
    ),
    "inference-pool": FeatureDescription(
        "InferencePool",
        "routing requests for language models by prefix cache",
        "Install the Gateway API inference extension 1.0 or newer (inference.networking.k8s.io/v1), and "
        "a gateway that implements it.",
    ),
    "kueue": FeatureDescription(
        "Kueue",
        "queues that admit pods by quota",
        "Install Kueue 0.16 or newer and create a LocalQueue in the namespaces of teams.",
    ),
    "device-claims": FeatureDescription(
        "Claims of GPUs (DRA)",
        "requesting GPUs by ResourceClaim",
        "Use Kubernetes 1.34 or newer with NVIDIA's DRA driver, which creates the DeviceClass gpu.nvidia.com.",
    ),
    "mig-claims": FeatureDescription(
        "Claims of MIG slices (DRA)",
        "requesting MIG slices by ResourceClaim",
        "Use Kubernetes 1.34 or newer with NVIDIA's DRA driver, which creates the DeviceClass mig.nvidia.com.",
    ),
    "device-tolerations": FeatureDescription(
        "Taints of devices (DRA)",
        "claims that tolerate taints of devices",
        "Use Kubernetes 1.36 or newer, without turning off the feature gate DRADeviceTaints.",
    ),
    "daemon-sets": FeatureDescription(
        "DaemonSets", "keeping images on nodes", "Use a cluster whose nodes run DaemonSets."
    ),
    "hpa-metrics": FeatureDescription(
        "Metrics server", "scaling on CPU or memory", "Install metrics-server."
    ),
    "external-metrics": FeatureDescription(
        "External metrics API",
        "scaling on the request queue without KEDA",
        "Install prometheus-adapter with a rule for nv_inference_pending_request_count (of vLLM, "
        "vllm:num_requests_waiting), or KEDA.",
    ),
}

ENGINE_NEEDS: Mapping[str, tuple[str, ...]] = {
    "kserve-triton": ("kserve",),
    "triton": (),
    "kserve-vllm": ("kserve",),
    "kserve-sglang": ("kserve",),
    "kserve-tensorrt-llm": ("kserve",),
    "triton-vllm": (),
    "llm-inference-service": ("llm-inference-service",),
}

# Alternatives: the option needs all features of one inner tuple.
OPTION_NEEDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "canary": (("gateway-api",),),
    "shadow": (("gateway-api", "request-mirror"),),
    "fixed": ((),),
    "hpa": (("hpa-metrics",),),
    "scale-to-zero": (("keda",), ("kserve-knative",)),
    "knative": (("kserve-knative",),),
    "model-cache": (("local-model-cache",),),
    "multi-node": (("kserve",),),
    "prefix-routing": (("llm-inference-service", "inference-pool", "gateway-api"),),
    "strict-mtls": (("istio",),),
    "pipeline": (("inference-graph", "gateway-api"),),
    "protected-pipeline": (
        (
            "inference-graph",
            "gateway-api",
            "caller-keys",
            "credential-injection",
            "header-propagation",
        ),
    ),
    "service-monitor": (("prometheus",),),
} | {name: ((name,),) for name in FEATURE_DESCRIPTIONS}
