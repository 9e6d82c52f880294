"""The controllers of features that a cluster may have, where they are installed by default."""

from __future__ import annotations

from collections.abc import Mapping

# Namespace and name of the controllers of features, by default: their image tags give the versions.
CONTROLLERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "kserve": (("kserve", "kserve-controller-manager"),),
    "kserve-knative": (("knative-serving", "controller"),),
    "keda": (("keda", "keda-operator"),),
    "karpenter": (("kube-system", "karpenter"), ("karpenter", "karpenter")),
    "istio": (("istio-system", "istiod"),),
    "leader-worker-set": (("lws-system", "lws-controller-manager"),),
    "kueue": (("kueue-system", "kueue-controller-manager"),),
    "hpa-metrics": (("kube-system", "metrics-server"),),
    "model-routing": (("envoy-gateway-system", "envoy-gateway"),),
}
