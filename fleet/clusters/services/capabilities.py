"""Probe a cluster's capabilities and store them. A feature without permission to check is not
known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from fleet.clusters.domain import (
    keda_releases,
    kserve_releases,
    monitor_selection,
    node_pools,
    provisioner,
    queues,
)
from fleet.clusters.domain.capabilities import Capabilities, Feature, GpuOffer
from fleet.clusters.domain.capability_descriptions import ENGINE_NEEDS
from fleet.clusters.domain.monitor_selection import PrometheusSelection
from fleet.clusters.domain.node_pools import NodePool
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.selectors.default_serving_policy import default_policy
from fleet.clusters.services import (
    api_server_probe,
    credential_probe,
    device_class_probe,
    gateway_probe,
    key_check_probe,
    kserve_probe,
    model_routing_probe,
    prometheus,
    queue_probe,
)
from fleet.clusters.services.installed_versions import read_version
from fleet.gpus.domain import shares
from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import ClusterError, NotAllowed, ObjectNotFound
from fleet.kube.domain.resource_types import Manifest, ResourceType
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients, namespaces
from fleet.models import Cluster
from portal.core import clock

_LOCAL_VERSION = "+slipway.local"
_LOCAL_REASON = (
    "The embedded local cluster runs Triton with its Python backend, and kserve-vllm and kserve-sglang "
    "with random weights."
)
_LOCAL_ENGINES = ("kserve-triton", "triton", "kserve-vllm", "kserve-sglang")
LOCAL_LIMITS: Mapping[str, str] = {
    engine: _LOCAL_REASON for engine in ENGINE_NEEDS if engine not in _LOCAL_ENGINES
}
_LOCAL_NOTES: Mapping[str, str] = {
    engine: f"Instead of {server}, the embedded local cluster runs a small network with random weights."
    for engine, server in (("kserve-vllm", "vLLM"), ("kserve-sglang", "SGLang"))
}
_PROBE_EVERY = timedelta(minutes=10)
# Feature to API group: the group is served when the product is installed.
_GROUPS: Mapping[str, str] = {
    "kserve": "serving.kserve.io",
    "keda": "keda.sh",
    "karpenter": "karpenter.sh",
    "prometheus": "monitoring.coreos.com",
    "istio": "security.istio.io",
    "leader-worker-set": "leaderworkerset.x-k8s.io",
    "inference-pool": "inference.networking.k8s.io",
    "kueue": queues.GROUP,
    "hpa-metrics": "metrics.k8s.io",
    "external-metrics": "external.metrics.k8s.io",
}
# One adapter serves the whole API group.
_KEDAS_OWN = Feature(
    is_there=False, why="KEDA serves the external metrics of this cluster, for its own objects only"
)
_NO_SCALED_OBJECTS = Feature(
    is_there=False, why="The embedded local cluster has KEDA's ScaledJobs only"
)
_NO_IMAGES = Feature(is_there=False, why="The embedded local cluster pulls no images")
_NO_DAEMON_SETS = Feature(is_there=False, why="The embedded local cluster runs no DaemonSets")
# What platforms make of the gateway's access log (docs/callers.md).
CALLER_TOKENS = "slipway_caller_tokens_total"
_PEER_AUTHENTICATION = ("security.istio.io/v1", "PeerAuthentication")
NODE_POOL = resource_types.NODE_POOL
PROMETHEUS = ResourceType("monitoring.coreos.com/v1", "Prometheus", "prometheuses")


def probe(*, cluster_id: int) -> Capabilities:
    """Raises ClusterError when the cluster does not respond or refuses the portal's credentials."""
    cluster = Cluster.objects.get(pk=cluster_id)
    client = clients.client_for(cluster_id)
    capabilities = read_capabilities(
        client,
        gateway=(cluster.gateway_namespace, cluster.gateway_name),
        policy=ServingPolicy.from_json(cluster.serving).with_defaults(default_policy()),
        at=clock.now(),
        promql=prometheus.probe(cluster),
        caller_tokens=prometheus.probe_metric(cluster, CALLER_TOKENS),
    ).keeping_known(Capabilities.from_json(cluster.capabilities))
    Cluster.objects.filter(pk=cluster_id).update(
        capabilities=capabilities.to_json(), is_reachable=True, last_error=""
    )
    namespaces.refresh_others(cluster_id)
    return capabilities


def is_due(cluster: Cluster, at: datetime) -> bool:
    """Whether the last probe is missing or older than ten minutes."""
    capabilities = Capabilities.from_json(cluster.capabilities)
    if not capabilities.features or not capabilities.probed_at:
        return True
    return at - datetime.fromisoformat(capabilities.probed_at) >= _PROBE_EVERY


def read_capabilities(
    client: KubeClient,
    *,
    gateway: tuple[str, str],
    policy: ServingPolicy,
    at: datetime,
    promql: Feature,
    caller_tokens: Feature,
) -> Capabilities:
    version = client.version()
    groups, is_local = client.groups(), version.endswith(_LOCAL_VERSION)
    features = {"kubernetes": Feature(is_there=True, version=version)}
    features |= _group_features(client, groups, is_local=is_local)
    flags = kserve_probe.read_knative_flags(client, groups)
    features |= kserve_probe.read_features(client, features["kserve"], groups, flags)
    features |= _too_old(features, kserve=features["kserve"].version)
    of_gateway, key_check = _gateway_features(
        client, gateway, policy, groups, caller_tokens, is_local=is_local
    )
    features |= of_gateway
    features["pod-proxy"] = _pod_proxy(client, policy, version)
    features["promql"] = promql
    features |= device_class_probe.read(client, groups, kubernetes=version)
    features["gateway-metrics"] = gateway_probe.read_metrics(client, gateway, promql)
    if is_local:
        features["image-weights"] = _NO_IMAGES
    features["daemon-sets"] = _NO_DAEMON_SETS if is_local else Feature(is_there=True)
    nodes, why = _nodes(client)
    pools, node_classes = _node_pools(client, features["karpenter"])
    return Capabilities(
        features=features,
        gpu_offers=None if nodes is None else gpu_offers(nodes),
        gpus_why=why,
        node_pools=pools,
        node_labels=provisioner.read(groups, map(_labels, nodes or ()), node_classes),
        knative_flags=flags,
        kueue=queue_probe.read_kueue(client, groups),
        prometheuses=_prometheuses(client, features["prometheus"]),
        api_servers=api_server_probe.read_addresses(client),
        probed_at=at.isoformat(),
        excluded_engines=LOCAL_LIMITS if is_local else {},
        key_check=key_check,
        engine_notes=_LOCAL_NOTES if is_local else {},
    )


def _group_features(
    client: KubeClient, groups: Mapping[str, list[str]], *, is_local: bool
) -> dict[str, Feature]:
    """Return the features that are known by their API group."""
    features = {
        name: _group_feature(client, name, group, groups) for name, group in _GROUPS.items()
    }
    if features["istio"].is_there and not _serves(client, _PEER_AUTHENTICATION):
        # Its policies of gateways alone encrypt nothing between pods.
        features["istio"] = Feature(is_there=False, why="The cluster serves no PeerAuthentication")
    if problem := keda_releases.problem_with(features["keda"].version):
        features["keda"] = replace(features["keda"], is_there=False, why=problem)
    features["scaled-jobs"] = features["keda"]
    if is_local:
        features["keda"] = _NO_SCALED_OBJECTS
    if features["keda"].is_there and features["external-metrics"].is_there:
        features["external-metrics"] = _KEDAS_OWN
    return features


def _gateway_features(
    client: KubeClient,
    gateway: tuple[str, str],
    policy: ServingPolicy,
    groups: Mapping[str, list[str]],
    caller_tokens: Feature,
    *,
    is_local: bool,
) -> tuple[dict[str, Feature], str]:
    """Return the features of the cluster's Gateway, and how it checks keys (Capabilities.key_check)."""
    api = gateway_probe.read_gateway(client, gateway, groups)
    key_check = key_check_probe.read(client, gateway, api, groups)
    features = {
        "gateway-api": api,
        "gateway-proxies": gateway_probe.read_proxies(client, gateway, policy.gateway_namespaces),
        "request-mirror": gateway_probe.read_mirror(client, gateway, api),
        "caller-keys": key_check.feature,
        "caller-jwt": key_check_probe.check_jwt(key_check),
        model_routing_probe.FEATURE: model_routing_probe.read(client, key_check, is_local=is_local),
        "credential-injection": credential_probe.read(client, key_check, is_local=is_local),
        "token-counts": gateway_probe.read_token_counts(client, gateway, api, caller_tokens),
    }
    return features, key_check.kind


def _serves(client: KubeClient, kind: tuple[str, str]) -> bool:
    try:
        client.resource_type(*kind)
    except ObjectNotFound:
        return False
    return True


def _pod_proxy(client: KubeClient, policy: ServingPolicy, version: str) -> Feature:
    if version.endswith(_LOCAL_VERSION):
        # The embedded cluster enforces no network policies.
        return Feature(is_there=True)
    return api_server_probe.read_pod_proxy(client, policy.control_plane_cidrs)


def _too_old(features: Mapping[str, Feature], *, kserve: str) -> dict[str, Feature]:
    """Return the features that the installed release of KServe does not have as the portal uses them."""
    problems = {name: kserve_releases.problem_with(name, kserve) for name in features}
    return {
        name: Feature(is_there=False, version=features[name].version, why=problem)
        for name, problem in problems.items()
        if problem and features[name].is_there
    }


def _group_feature(
    client: KubeClient, name: str, group: str, groups: Mapping[str, list[str]]
) -> Feature:
    if group not in groups:
        return Feature(is_there=False)
    return Feature(is_there=True, version=read_version(client, name) or groups[group][0])


def _node_pools(
    client: KubeClient, karpenter: Feature
) -> tuple[tuple[NodePool, ...] | None, set[str]]:
    """Return karpenter's pools, None where they are not known, and the API groups of their node classes."""
    if not karpenter.is_there:
        return None, set()
    try:
        items = client.list_all(NODE_POOL).items
    except (NotAllowed, ObjectNotFound):
        return None, set()
    return node_pools.parse_pools(items), set(map(node_pools.node_class_group, items))


def _prometheuses(client: KubeClient, operator: Feature) -> tuple[PrometheusSelection, ...] | None:
    if not operator.is_there:
        return None
    try:
        return monitor_selection.parse(client.list_all(PROMETHEUS).items)
    except (NotAllowed, ObjectNotFound):
        return None


def _nodes(client: KubeClient) -> tuple[list[Manifest] | None, str]:
    """Return the nodes, or None and why they are not known."""
    try:
        return list(client.list_all(resource_types.NODE).items), ""
    except NotAllowed:
        return None, "Could not check GPUs: the portal's role has no permission to list nodes."


def _labels(node: Manifest) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def gpu_offers(nodes: Iterable[Manifest]) -> tuple[GpuOffer, ...]:
    """Return the GPU resources of the nodes, grouped by resource, product, memory and sharing."""
    on_nodes: Counter[tuple[str, str, int, str]] = Counter()
    units: Counter[tuple[str, str, int, str]] = Counter()
    for node in nodes:
        labels = _labels(node)
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        gpus = shares.read_gpus(labels, allocatable)
        for resource, amount in allocatable.items():
            if not shares.is_requestable(resource) or not str(amount).isdigit() or int(amount) == 0:
                continue
            memory = shares.vram_mib(resource, 1, gpus)
            key = (resource, gpus.product, memory, shares.sharing(resource, gpus))
            on_nodes[key] += 1
            units[key] += int(amount)
    return tuple(
        GpuOffer(resource, product, memory, on_nodes[key], units[key], sharing)
        for key in sorted(units)
        for resource, product, memory, sharing in (key,)
    )


def note_failure(cluster_id: int, error: ClusterError) -> None:
    Cluster.objects.filter(pk=cluster_id).update(is_reachable=False, last_error=error.message)
