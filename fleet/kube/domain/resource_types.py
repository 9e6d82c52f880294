"""The resource types of the Kubernetes API that Slipway uses. They are not discovered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResourceType:
    api_version: str
    kind: str
    plural: str
    is_namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the URL path of the collection or, with a name, of one object."""
        root = "/apis/" if "/" in self.api_version else "/api/"
        path = f"{root}{self.api_version}"
        if self.is_namespaced and namespace:
            path += f"/namespaces/{quote(namespace, safe='')}"
        path += f"/{self.plural}"
        return f"{path}/{quote(name, safe='')}" if name else path


POD = ResourceType("v1", "Pod", "pods")
NODE = ResourceType("v1", "Node", "nodes", is_namespaced=False)
INFERENCE_SERVICE = ResourceType(
    "serving.kserve.io/v1beta1", "InferenceService", "inferenceservices"
)
DEPLOYMENT = ResourceType("apps/v1", "Deployment", "deployments")
HTTP_ROUTE = ResourceType("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes")
NETWORK_POLICY = ResourceType("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
DISRUPTION_BUDGET = ResourceType("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
SERVICE_MONITOR = ResourceType("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors")

NODE_POOL = ResourceType("karpenter.sh/v1", "NodePool", "nodepools", is_namespaced=False)
EC2_NODE_CLASS = ResourceType(
    "karpenter.k8s.aws/v1", "EC2NodeClass", "ec2nodeclasses", is_namespaced=False
)

DEVICE_CLASS = ResourceType(
    "resource.k8s.io/v1", "DeviceClass", "deviceclasses", is_namespaced=False
)
RESOURCE_SLICE = ResourceType(
    "resource.k8s.io/v1", "ResourceSlice", "resourceslices", is_namespaced=False
)
# The newest that the cluster serves counts.
DEVICE_TAINT_RULES = tuple(
    ResourceType(
        f"resource.k8s.io/{version}", "DeviceTaintRule", "devicetaintrules", is_namespaced=False
    )
    for version in ("v1", "v1beta2", "v1alpha3")
)
RESOURCE_CLAIM = ResourceType("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")

KNOWN: tuple[ResourceType, ...] = (
    POD,
    NODE,
    INFERENCE_SERVICE,
    DEPLOYMENT,
    HTTP_ROUTE,
    NETWORK_POLICY,
    DISRUPTION_BUDGET,
    SERVICE_MONITOR,
    ResourceType("v1", "Namespace", "namespaces", is_namespaced=False),
    ResourceType("v1", "Service", "services"),
    ResourceType("v1", "ServiceAccount", "serviceaccounts"),
    ResourceType("v1", "Secret", "secrets"),
    ResourceType("v1", "ConfigMap", "configmaps"),
    ResourceType("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ResourceType("v1", "Event", "events"),
    ResourceType("v1", "ResourceQuota", "resourcequotas"),
    ResourceType("v1", "LimitRange", "limitranges"),
    ResourceType("apps/v1", "DaemonSet", "daemonsets"),
    ResourceType("batch/v1", "Job", "jobs"),
    ResourceType("apps/v1", "ReplicaSet", "replicasets"),
    ResourceType("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ResourceType("serving.kserve.io/v1alpha1", "ServingRuntime", "servingruntimes"),
    ResourceType(
        "serving.kserve.io/v1alpha1",
        "ClusterServingRuntime",
        "clusterservingruntimes",
        is_namespaced=False,
    ),
    ResourceType("serving.kserve.io/v1alpha1", "InferenceGraph", "inferencegraphs"),
    ResourceType(
        "serving.kserve.io/v1alpha1",
        "LocalModelNodeGroup",
        "localmodelnodegroups",
        is_namespaced=False,
    ),
    NODE_POOL,
    EC2_NODE_CLASS,
    DEVICE_CLASS,
    RESOURCE_SLICE,
    RESOURCE_CLAIM,
    *DEVICE_TAINT_RULES,
    ResourceType("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    ResourceType("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", is_namespaced=False),
    ResourceType("gateway.networking.k8s.io/v1", "Gateway", "gateways"),
    ResourceType("keda.sh/v1alpha1", "ScaledObject", "scaledobjects"),
    ResourceType("keda.sh/v1alpha1", "ScaledJob", "scaledjobs"),
    ResourceType("keda.sh/v1alpha1", "TriggerAuthentication", "triggerauthentications"),
    ResourceType("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy", "securitypolicies"),
    ResourceType("security.istio.io/v1", "AuthorizationPolicy", "authorizationpolicies"),
    ResourceType("security.istio.io/v1", "RequestAuthentication", "requestauthentications"),
    ResourceType(
        "gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy", "backendtrafficpolicies"
    ),
    ResourceType(
        "gateway.envoyproxy.io/v1alpha1", "EnvoyExtensionPolicy", "envoyextensionpolicies"
    ),
    ResourceType("gateway.envoyproxy.io/v1alpha1", "HTTPRouteFilter", "httproutefilters"),
)
_BY_KIND = {(known.api_version, known.kind): known for known in KNOWN}


def find(api_version: str, kind: str) -> ResourceType | None:
    """Return the resource type of a kind. None for a kind that has to be discovered from the cluster."""
    return _BY_KIND.get((api_version, kind))
