"""All resource types that the embedded cluster serves."""

from dataclasses import dataclass

from slipway_localcluster.errors import NotFound


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource type; also its key in the store."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    has_status: bool = True
    categories: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def resource(self) -> str:
        """The resource's name: `inferenceservices.serving.kserve.io`, or `pods` for the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def has_scale(self) -> bool:
        return self.group == "apps"


_KSERVE = "serving.kserve.io"
_GATEWAY = "gateway.networking.k8s.io"
_ALL = ("all",)

POD = Kind("", "v1", "Pod", "pods", namespaced=True, short_names=("po",), categories=_ALL)
NODE = Kind("", "v1", "Node", "nodes", namespaced=False, short_names=("no",))
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False, short_names=("ns",))
SERVICE = Kind(
    "", "v1", "Service", "services", namespaced=True, short_names=("svc",), categories=_ALL
)
ENDPOINTS = Kind(
    "", "v1", "Endpoints", "endpoints", namespaced=True, short_names=("ep",), has_status=False
)
EVENT = Kind("", "v1", "Event", "events", namespaced=True, short_names=("ev",), has_status=False)
SECRET = Kind("", "v1", "Secret", "secrets", namespaced=True, has_status=False)
SERVICE_ACCOUNT = Kind(
    "",
    "v1",
    "ServiceAccount",
    "serviceaccounts",
    namespaced=True,
    short_names=("sa",),
    has_status=False,
)
CONFIG_MAP = Kind(
    "", "v1", "ConfigMap", "configmaps", namespaced=True, short_names=("cm",), has_status=False
)
CLAIM = Kind(
    "",
    "v1",
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    namespaced=True,
    short_names=("pvc",),
)
RESOURCE_QUOTA = Kind(
    "", "v1", "ResourceQuota", "resourcequotas", namespaced=True, short_names=("quota",)
)
LIMIT_RANGE = Kind(
    "",
    "v1",
    "LimitRange",
    "limitranges",
    namespaced=True,
    short_names=("limits",),
    has_status=False,
)
DEPLOYMENT = Kind(
    "apps",
    "v1",
    "Deployment",
    "deployments",
    namespaced=True,
    short_names=("deploy",),
    categories=_ALL,
)
REPLICA_SET = Kind(
    "apps", "v1", "ReplicaSet", "replicasets", namespaced=True, short_names=("rs",), categories=_ALL
)
JOB = Kind("batch", "v1", "Job", "jobs", namespaced=True, categories=_ALL)
HPA = Kind(
    "autoscaling",
    "v2",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    namespaced=True,
    short_names=("hpa",),
    categories=_ALL,
)
PDB = Kind(
    "policy",
    "v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    namespaced=True,
    short_names=("pdb",),
)
NETWORK_POLICY = Kind(
    "networking.k8s.io",
    "v1",
    "NetworkPolicy",
    "networkpolicies",
    namespaced=True,
    short_names=("netpol",),
    has_status=False,
)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True, has_status=False)
CRD = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
    short_names=("crd", "crds"),
)
INFERENCE_SERVICE = Kind(
    _KSERVE,
    "v1beta1",
    "InferenceService",
    "inferenceservices",
    namespaced=True,
    short_names=("isvc",),
    categories=_ALL,
)
INFERENCE_GRAPH = Kind(
    _KSERVE,
    "v1alpha1",
    "InferenceGraph",
    "inferencegraphs",
    namespaced=True,
    short_names=("ig",),
    categories=_ALL,
)
SERVING_RUNTIME = Kind(_KSERVE, "v1alpha1", "ServingRuntime", "servingruntimes", namespaced=True)
CLUSTER_SERVING_RUNTIME = Kind(
    _KSERVE, "v1alpha1", "ClusterServingRuntime", "clusterservingruntimes", namespaced=False
)
GATEWAY_CLASS = Kind(
    _GATEWAY, "v1", "GatewayClass", "gatewayclasses", namespaced=False, short_names=("gc",)
)
GATEWAY = Kind(_GATEWAY, "v1", "Gateway", "gateways", namespaced=True, short_names=("gtw",))
HTTP_ROUTE = Kind(_GATEWAY, "v1", "HTTPRoute", "httproutes", namespaced=True)
SECURITY_POLICY = Kind(
    "gateway.envoyproxy.io",
    "v1alpha1",
    "SecurityPolicy",
    "securitypolicies",
    namespaced=True,
    short_names=("sp",),
)
BACKEND_TRAFFIC_POLICY = Kind(
    "gateway.envoyproxy.io",
    "v1alpha1",
    "BackendTrafficPolicy",
    "backendtrafficpolicies",
    namespaced=True,
    short_names=("btp",),
)
ENVOY_EXTENSION_POLICY = Kind(
    "gateway.envoyproxy.io",
    "v1alpha1",
    "EnvoyExtensionPolicy",
    "envoyextensionpolicies",
    namespaced=True,
    short_names=("eep",),
)
HTTP_ROUTE_FILTER = Kind(
    "gateway.envoyproxy.io",
    "v1alpha1",
    "HTTPRouteFilter",
    "httproutefilters",
    namespaced=True,
    short_names=("hrf",),
)
_ISTIO = "security.istio.io"
REQUEST_AUTHENTICATION = Kind(
    _ISTIO,
    "v1",
    "RequestAuthentication",
    "requestauthentications",
    namespaced=True,
    short_names=("ra",),
)
AUTHORIZATION_POLICY = Kind(
    _ISTIO,
    "v1",
    "AuthorizationPolicy",
    "authorizationpolicies",
    namespaced=True,
    short_names=("ap",),
)
_KEDA = "keda.sh"
SCALED_JOB = Kind(
    _KEDA, "v1alpha1", "ScaledJob", "scaledjobs", namespaced=True, short_names=("sj",)
)
TRIGGER_AUTHENTICATION = Kind(
    _KEDA,
    "v1alpha1",
    "TriggerAuthentication",
    "triggerauthentications",
    namespaced=True,
    short_names=("ta", "triggerauth"),
)

KINDS: tuple[Kind, ...] = (
    POD,
    NODE,
    NAMESPACE,
    SERVICE,
    ENDPOINTS,
    EVENT,
    SECRET,
    SERVICE_ACCOUNT,
    CONFIG_MAP,
    CLAIM,
    RESOURCE_QUOTA,
    LIMIT_RANGE,
    DEPLOYMENT,
    REPLICA_SET,
    JOB,
    HPA,
    PDB,
    NETWORK_POLICY,
    LEASE,
    CRD,
    INFERENCE_SERVICE,
    INFERENCE_GRAPH,
    SERVING_RUNTIME,
    CLUSTER_SERVING_RUNTIME,
    GATEWAY_CLASS,
    GATEWAY,
    HTTP_ROUTE,
    SECURITY_POLICY,
    BACKEND_TRAFFIC_POLICY,
    ENVOY_EXTENSION_POLICY,
    HTTP_ROUTE_FILTER,
    REQUEST_AUTHENTICATION,
    AUTHORIZATION_POLICY,
    SCALED_JOB,
    TRIGGER_AUTHENTICATION,
)

_BY_KIND = {(kind.api_version, kind.kind): kind for kind in KINDS}
_BY_PLURAL = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}


def by_kind(api_version: str, kind: str) -> Kind:
    try:
        return _BY_KIND[api_version, kind]
    except KeyError as error:
        raise NotFound(f'no matches for kind "{kind}" in version "{api_version}"') from error


def by_plural(group: str, version: str, plural: str) -> Kind:
    try:
        return _BY_PLURAL[group, version, plural]
    except KeyError as error:
        raise NotFound("the server could not find the requested resource") from error
