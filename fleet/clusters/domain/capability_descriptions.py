"""Each feature of a cluster: its purpose, what to install where it is missing, and what depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fleet.clusters.domain.kserve_releases import REQUIREMENTS


@dataclass(frozen=True, slots=True)
class FeatureDescription:
    """`gives` follows "needed for"; `install` is what an admin does when it is missing."""

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
    "keda": FeatureDescription(
        "KEDA",
        "scaling on queue length, on a schedule or to zero",
        "Install KEDA.",
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
    "leader-worker-set": FeatureDescription(
        "LeaderWorkerSet",
        "serving one model across several nodes",
        "Install the LeaderWorkerSet controller.",
    ),
    "hpa-metrics": FeatureDescription(
        "Metrics server", "scaling on CPU or memory", "Install metrics-server."
    ),
    "external-metrics": FeatureDescription(
        "External metrics API",
        "scaling on the request queue without KEDA",
        "Install prometheus-adapter with a rule for nv_inference_pending_request_count, or KEDA.",
    ),
}

ENGINE_NEEDS: Mapping[str, tuple[str, ...]] = {
    "kserve-triton": ("kserve",),
    "triton": (),
    "kserve-vllm": ("kserve",),
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
    "strict-mtls": (("istio",),),
    "pipeline": (("inference-graph", "gateway-api"),),
    "service-monitor": (("prometheus",),),
} | {name: ((name,),) for name in FEATURE_DESCRIPTIONS}
