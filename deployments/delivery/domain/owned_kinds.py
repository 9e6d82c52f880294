"""The kinds that the portal writes for a deployment, as (apiVersion, kind).

Orphans are sought among these: objects with the label of a deployment that none of its manifests names.
"""

from __future__ import annotations

from typing import Final

Kind = tuple[str, str]

# One of these is a revision's workload: it carries the digest of what was approved.
WORKLOADS: Final[tuple[Kind, ...]] = (
    ("serving.kserve.io/v1beta1", "InferenceService"),
    ("apps/v1", "Deployment"),
    ("serving.kserve.io/v1alpha1", "LLMInferenceService"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
)
ROUTE: Final[Kind] = ("gateway.networking.k8s.io/v1", "HTTPRoute")
POD: Final[Kind] = ("v1", "Pod")
# Who may call the route.
ACCESS_POLICY: Final[Kind] = ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy")
# In the namespace of a Gateway of Istio: who may call its routes, and whose tokens it verifies.
GATEWAY_ACCESS: Final[Kind] = ("security.istio.io/v1", "AuthorizationPolicy")
GATEWAY_TOKENS: Final[Kind] = ("security.istio.io/v1", "RequestAuthentication")
# Of the team's address, which several deployments share.
TEAM_ADDRESS: Final[tuple[Kind, ...]] = (
    ROUTE,
    ACCESS_POLICY,
    ("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy"),
    ("gateway.envoyproxy.io/v1alpha1", "EnvoyExtensionPolicy"),
)
# Created with a workload and removed with it.
DEPENDENT_OBJECTS: Final[tuple[Kind, ...]] = (
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "PersistentVolumeClaim"),
    ("apps/v1", "DaemonSet"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    ("policy/v1", "PodDisruptionBudget"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("keda.sh/v1alpha1", "TriggerAuthentication"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("monitoring.coreos.com/v1", "PodMonitor"),
    ("security.istio.io/v1", "PeerAuthentication"),
    ACCESS_POLICY,
    ("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy"),
    ("serving.kserve.io/v1alpha1", "InferenceGraph"),
)
