"""Read the cluster's Gateway: whether it works, what it supports, and where its proxies run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from fleet.clusters.domain.capabilities import Feature
from fleet.clusters.services.unknown_features import or_unknown
from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import ClusterError, NotAllowed, ObjectNotFound
from fleet.kube.domain.resource_types import Manifest, ResourceType
from fleet.kube.gateways.kube_client import KubeClient

GATEWAY = ResourceType("gateway.networking.k8s.io/v1", "Gateway", "gateways")
GATEWAY_CLASS = ResourceType("gateway.networking.k8s.io/v1", "GatewayClass", "gatewayclasses")
# The feature's name in the Gateway API's conformance tests.
_PERCENTAGE_MIRROR = "HTTPRouteRequestPercentageMirror"
# No feature of the Gateway API: the embedded cluster's gateway reports it.
_COUNTS_TOKENS = "slipway.dev/TokenCounts"
# Set on the proxies' pods by Istio and others after the Gateway API's proposal 1762, and by Envoy Gateway.
_PROXY_LABELS = (
    "gateway.networking.k8s.io/gateway-name",
    "gateway.envoyproxy.io/owning-gateway-name",
)

# Where a pod offers its metrics, as Envoy Gateway and Istio annotate their proxies.
_SCRAPE, _PORT, _PATH = (f"prometheus.io/{name}" for name in ("scrape", "port", "path"))
_PROXY_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running pod of the Gateway that offers its metrics at `port` and `path`."""

    namespace: str
    pod: str
    port: int
    path: str

    def read(self, client: KubeClient, *, only: str) -> str:
        """Read the proxy's metrics. `only` is a regular expression of Envoy's own names, which a proxy may ignore."""
        path = f"{self.path}?{urlencode({'filter': only})}"
        return client.proxy_get(self.namespace, self.pod, self.port, path, seconds=_PROXY_SECONDS)


def read_gateway(
    client: KubeClient, gateway: tuple[str, str], groups: Mapping[str, list[str]]
) -> Feature:
    versions = groups.get("gateway.networking.k8s.io")
    if versions is None:
        return Feature(is_there=False)
    namespace, name = gateway
    where = f"Gateway {namespace}/{name}"

    def check() -> Feature:
        try:
            gateway_object = client.get(GATEWAY, namespace, name)
        except ObjectNotFound:
            return Feature(is_there=False, version=versions[0], why=f"{where} does not exist")
        programmed = _condition(gateway_object, "Programmed")
        if programmed.get("status") == "True":
            return Feature(is_there=True, version=versions[0], why=f"{where} is programmed.")
        reason = programmed.get("message") or "no controller has accepted it"
        why = f"{where} is not programmed ({str(reason).rstrip('.')})"
        return Feature(is_there=False, version=versions[0], why=why)

    return or_unknown(check, f"get gateways.gateway.networking.k8s.io in {namespace}")


def read_mirror(client: KubeClient, gateway: tuple[str, str], api: Feature) -> Feature:
    """Return the support for mirroring as the GatewayClass reports it; unknown without a report."""
    why_not = "cannot mirror a percentage of requests"
    return _read_supported(client, gateway, api, _PERCENTAGE_MIRROR, why_not)


def read_token_counts(
    client: KubeClient, gateway: tuple[str, str], api: Feature, metric: Feature
) -> Feature:
    """Whether tokens of callers are counted: by the gateway, as it reports, or else as a `metric`."""
    if metric.is_there:
        return metric
    reported = _read_supported(client, gateway, api, _COUNTS_TOKENS, "does not count tokens")
    return reported if reported.is_there else metric


def _read_supported(
    client: KubeClient,
    gateway: tuple[str, str],
    api: Feature,
    feature: str,
    why_not: str,
) -> Feature:
    """Return whether the GatewayClass supports the feature. `why_not` follows the name of the class."""
    if not api.is_there:
        return Feature(is_there=api.is_there, why=api.why or "The Gateway API is not installed")

    def check() -> Feature:
        name = client.get(GATEWAY, *gateway)["spec"]["gatewayClassName"]
        try:
            gateway_class = client.get(GATEWAY_CLASS, None, name)
        except ObjectNotFound:
            return Feature(is_there=False, why=f"GatewayClass {name} does not exist")
        listed = (gateway_class.get("status") or {}).get("supportedFeatures") or []
        # Before Gateway API 1.3 the list had bare names.
        supported = {item["name"] if isinstance(item, Mapping) else item for item in listed}
        if not supported:
            return Feature(None, why=f"GatewayClass {name} does not report what it supports.")
        if feature in supported:
            return Feature(is_there=True)
        return Feature(is_there=False, why=f"{name} {why_not}")

    return or_unknown(check, "get gatewayclasses.gateway.networking.k8s.io")


def read_proxies(client: KubeClient, gateway: tuple[str, str], allowed: Sequence[str]) -> Feature:
    """Check whether network policies admit the Gateway's proxies: policies name namespaces, and proxies may run in
    another one than their Gateway.
    """
    own, name = gateway

    def check() -> Feature:
        pods = _pods_of(client, name)
        others = {pod["metadata"]["namespace"] for pod in pods} - {own, *allowed}
        if not others:
            return Feature(is_there=True)
        why = f"The proxies of Gateway {own}/{name} run in {', '.join(sorted(others))}, which network "
        return Feature(is_there=False, why=why + "policies do not admit")

    return or_unknown(check, "list pods")


def read_metrics(client: KubeClient, gateway: tuple[str, str], promql: Feature) -> Feature:
    """Whether requests can be counted where they pass: at the proxies, or else in Prometheus."""
    where = f"Gateway {'/'.join(gateway)}"

    def check() -> Feature:
        proxies = list_proxies(client, gateway)
        if not proxies:
            return Feature(is_there=False, why=f"No proxy of {where} states a port for its metrics")
        proxy = proxies[0]
        try:
            proxy.read(client, only=r"^server\.live$")
        except NotAllowed:
            verb = f"get pods/proxy in {proxy.namespace}"
            return Feature(None, why=f"The portal's role has no permission to {verb}.")
        except ClusterError as error:
            why = f"The metrics of {proxy.namespace}/{proxy.pod} cannot be read: {error.message}"
            return Feature(None, why=why)
        return Feature(is_there=True)

    feature = or_unknown(check, "list pods")
    return Feature(is_there=True) if promql.is_there and not feature.is_there else feature


def list_proxies(client: KubeClient, gateway: tuple[str, str]) -> list[Proxy]:
    """Return the proxies whose metrics can be read. Empty for a Gateway without such pods (a cloud's load balancer)."""
    proxies = set()
    for pod in _pods_of(client, gateway[1]):
        metadata = pod["metadata"]
        annotations = metadata.get("annotations") or {}
        is_running = (pod.get("status") or {}).get("phase") == "Running"
        port = annotations.get(_PORT, "")
        if is_running and port.isdigit() and annotations.get(_SCRAPE, "true") == "true":
            path = annotations.get(_PATH, "/metrics").lstrip("/")
            proxies.add(Proxy(metadata["namespace"], metadata["name"], int(port), path))
    return sorted(proxies, key=lambda proxy: (proxy.namespace, proxy.pod))


def _pods_of(client: KubeClient, name: str) -> list[Manifest]:
    return [
        pod
        for label in _PROXY_LABELS
        for pod in client.list_all(resource_types.POD, labels={label: name}).items
    ]


def _condition(item: Manifest, kind: str) -> Mapping[str, str]:
    conditions = (item.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == kind), {})
