"""What each feature of a cluster is good for, what to install where it is missing, and what needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FeatureWords:
    """`gives` follows "without it there is no …"; `install` is what an admin does about it."""

    title: str
    gives: str
    install: str
    # What to do where it is not known; empty: grant the permission to look.
    mend: str = ""


WORDS: Mapping[str, FeatureWords] = {
    "kubernetes": FeatureWords(
        "Kubernetes", "cluster to deploy to", "Use a version that its vendor still supports."
    ),
    "kserve": FeatureWords(
        "KServe",
        "kserve engine; only the triton engines work",
        "Install KServe 0.16 or newer, or use a triton engine.",
    ),
    "kserve-knative": FeatureWords(
        "KServe in Knative mode",
        "scaling on requests in flight, nor to zero with requests held back meanwhile",
        "Install Knative Serving beside KServe.",
    ),
    "llm-inference-service": FeatureWords(
        "LLMInferenceService",
        "language model serving by LLMInferenceService",
        "Install KServe 0.17 or newer with its LLM custom resources.",
    ),
    "inference-graph": FeatureWords(
        "InferenceGraph",
        "pipeline of several deployments",
        "Install KServe 0.16 or newer with its InferenceGraph custom resource.",
    ),
    "gateway-api": FeatureWords(
        "Gateway API",
        "stable URL and no canary",
        "Install the Gateway API and a gateway of the name that the cluster is registered with.",
    ),
    "request-mirror": FeatureWords(
        "Request mirroring",
        "shadow rollouts",
        "Use a gateway that supports HTTPRouteRequestPercentageMirror of the Gateway API.",
    ),
    "keda": FeatureWords(
        "KEDA",
        "scaling on queue length, on a schedule or to zero",
        "Install KEDA.",
    ),
    "karpenter": FeatureWords(
        "Karpenter",
        "starting of nodes by need",
        "Install Karpenter, or keep GPU nodes in a node group.",
    ),
    "prometheus": FeatureWords(
        "Prometheus operator",
        "scraping of model metrics by ServiceMonitor",
        "Install the Prometheus operator with its custom resources.",
    ),
    "promql": FeatureWords(
        "Prometheus",
        "PromQL guard and no percentile of latency in rollouts",
        "Register the address of the cluster's Prometheus.",
        "Check its address, its token and the way to it; then test again.",
    ),
    "istio": FeatureWords(
        "Istio", "strict mTLS between pods", "Install Istio, or leave strict mTLS off."
    ),
    "local-model-cache": FeatureWords(
        "LocalModelCache",
        "cache of models on the nodes by KServe",
        "Install KServe with its LocalModel controller.",
    ),
    "leader-worker-set": FeatureWords(
        "LeaderWorkerSet", "model over several nodes", "Install the LeaderWorkerSet controller."
    ),
    "hpa-metrics": FeatureWords(
        "Metrics server", "scaling on CPU or memory", "Install metrics-server."
    ),
}

ENGINE_NEEDS: Mapping[str, tuple[str, ...]] = {
    "kserve-triton": ("kserve",),
    "triton": (),
    "kserve-vllm": ("kserve",),
    "triton-vllm": (),
    "llm-inference-service": ("llm-inference-service",),
}

# Each inner tuple is one way to have it.
OPTION_NEEDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "canary": (("gateway-api",),),
    "shadow": (("gateway-api", "request-mirror"),),
    "fixed": ((),),
    "hpa": (("hpa-metrics",),),
    "scale-to-zero": (("keda",), ("kserve-knative",)),
    "knative": (("kserve-knative",),),
    "model-cache": (("local-model-cache",),),
    "multi-node": (("leader-worker-set",),),
    "strict-mtls": (("istio",),),
    "pipeline": (("inference-graph", "gateway-api"),),
    "service-monitor": (("prometheus",),),
} | {name: ((name,),) for name in WORDS}
