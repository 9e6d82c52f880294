"""Every request that the portal makes is in the list of permissions, and nothing else is."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import pytest
from django.core.management import CommandError, call_command

from deployments.batch.domain import scaled_job
from deployments.delivery.domain import owned_kinds
from deployments.load_tests.domain import job
from deployments.pipelines.domain import manifests as pipeline_manifests
from fleet.clusters.domain.queues import Kueue
from fleet.clusters.domain.rbac import FLEET_ACTIONS, ISTIO_KEYS, PERMISSIONS
from fleet.clusters.services import api_server_probe, capabilities, gateway_probe
from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import ClusterError
from fleet.kube.domain.pod_proxy import PodRequest
from fleet.kube.domain.resource_types import ResourceType
from fleet.kube.gateways.client import HttpKubeClient
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.gateways.transport import Transport
from fleet.kube.services import clients, node_classes, node_pools, nodes, objects
from fleet.kube.services.ownership import Writer
from fleet.observation.services import watch
from tests.accounts import make_team
from tests.contract.account import cluster_rbac

Permission = tuple[str, str, str]

# Objects that a team's namespace, or the cluster, has once.
SHARED = (
    ("v1", "Namespace"),
    ("v1", "ServiceAccount"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    ("serving.kserve.io/v1alpha1", "ServingRuntime"),
    ("serving.kserve.io/v1alpha1", "LocalModelCache"),
)
# What a request may name there.
NAMED = (
    ("serving.kserve.io/v1alpha1", "ClusterServingRuntime"),
    ("serving.kserve.io/v1alpha1", "LocalModelNodeGroup"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
)
# Plurals of kinds that the cluster under test may not serve.
PLURALS = {
    "LLMInferenceService": "llminferenceservices",
    "LeaderWorkerSet": "leaderworkersets",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "TriggerAuthentication": "triggerauthentications",
    "ServiceMonitor": "servicemonitors",
    "PodMonitor": "podmonitors",
    "PeerAuthentication": "peerauthentications",
    "SecurityPolicy": "securitypolicies",
    "BackendTrafficPolicy": "backendtrafficpolicies",
    "EnvoyExtensionPolicy": "envoyextensionpolicies",
    "HTTPRouteFilter": "httproutefilters",
    "Secret": "secrets",
    "InferenceGraph": "inferencegraphs",
    "LocalModelCache": "localmodelcaches",
}


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> set[Permission]:
    """Each request that reaches the transport, as RBAC sees it."""
    requested: set[Permission] = set()
    send = Transport._send

    def record(
        self: Transport, method: str, path: str, query: Any, *rest: Any, **options: Any
    ) -> Any:
        requested.update(as_rbac(method, path, query))
        return send(self, method, path, query, *rest, **options)

    monkeypatch.setattr(Transport, "_send", record)
    return requested


def as_rbac(method: str, path: str, query: Any) -> set[Permission]:
    parts = [unquote(part) for part in path.strip("/").split("/")]
    group, rest = (
        ("", parts[2:]) if parts[0] == "api" else (parts[1] if parts[1:] else "", parts[3:])
    )
    if not rest or group == "authorization.k8s.io":
        # Discovery and questions about oneself are everybody's.
        return set()
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource, is_named = rest[0], len(rest) > 1
    resource += f"/{rest[2]}" if len(rest) > 2 else ""
    if method == "PATCH":
        return {("patch", group, resource), ("create", group, resource)}
    watches = dict(query).get("watch") == "true"
    read = "get" if is_named else "watch" if watches else "list"
    verb = {"GET": read, "DELETE": "delete", "POST": "create"}[method]
    return {(verb, group, resource)}


def quietly(call: Any, *args: Any, **options: Any) -> None:
    """The cluster's response does not matter: the request was made."""
    try:
        call(*args, **options)
    except ClusterError:
        return


def first_event(client: KubeClient, kind: ResourceType) -> None:
    next(iter(client.watch(kind, resource_version="", seconds=1)), None)


def what_jobs_do(cluster_id: int, namespace: str) -> None:
    of_job = {"api_version": job.API_VERSION, "kind": job.KIND, "namespace": namespace}
    metadata = {"name": "requested", "namespace": namespace}
    manifest = {"apiVersion": job.API_VERSION, "kind": job.KIND, "metadata": metadata}
    quietly(objects.apply, cluster_id=cluster_id, manifests=[manifest])
    quietly(objects.get, cluster_id=cluster_id, name="requested", **of_job)
    quietly(objects.list_objects, cluster_id=cluster_id, labels={}, **of_job)
    quietly(objects.delete, cluster_id=cluster_id, name="requested", **of_job)
    of_scaled = {"api_version": scaled_job.API_VERSION, "kind": scaled_job.KIND}
    scaled = {"apiVersion": scaled_job.API_VERSION, "kind": scaled_job.KIND, "metadata": metadata}
    quietly(objects.apply, cluster_id=cluster_id, manifests=[scaled])
    for call in (objects.get, objects.delete):
        quietly(call, cluster_id=cluster_id, namespace=namespace, name="requested", **of_scaled)
    of_events = {"api_version": "v1", "kind": "Event", "namespace": namespace}
    quietly(objects.list_objects, cluster_id=cluster_id, labels={}, **of_events)


def what_fleet_actions_do(cluster_id: int, namespace: str) -> None:
    of_node: Mapping[str, Any] = {"cluster_id": cluster_id, "name": "requested"}
    quietly(nodes.get, **of_node)
    quietly(nodes.patch, uid="requested", body={"spec": {"unschedulable": True}}, **of_node)
    quietly(nodes.list_pods, **of_node)
    quietly(nodes.evict, cluster_id=cluster_id, namespace=namespace, pod="requested", uid="u")
    of_pool: Mapping[str, Any] = {"cluster_id": cluster_id, "name": "requested"}
    quietly(node_pools.get, **of_pool)
    quietly(node_pools.patch, body={}, **of_pool)
    quietly(node_classes.list_all, cluster_id=cluster_id)
    quietly(node_classes.get, **of_pool)
    quietly(node_classes.patch, body={}, **of_pool)


def what_queues_need(client: KubeClient, namespace: str) -> None:
    kueue = Kueue("kueue.x-k8s.io/v1beta2", "visibility.kueue.x-k8s.io/v1beta2")
    pending = kueue.pending_type("requested")
    assert pending is not None
    quietly(client.get, kueue.local_queue_type, namespace, "requested")
    quietly(client.get, kueue.cluster_queue_type, None, "requested")
    quietly(client.list_all, kueue.workload_type, namespace=namespace)
    quietly(client.list_all, pending, namespace=namespace)


def own_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the portal find its own objects: what it may not write, or is gone, it asks no more than to read."""

    def delete(self: Writer, kind: ResourceType, namespace: str | None, name: str) -> None:
        if kind.kind != "Secret":
            quietly(self.client.get, kind, namespace, name)
        self.client.delete(kind, namespace, name)

    def live(self: Writer, kind: ResourceType, namespace: str | None, name: str) -> None:
        quietly(self.client.get, kind, namespace, name)

    monkeypatch.setattr(Writer, "_check_namespace", lambda *_: None)
    monkeypatch.setattr(Writer, "_live", live)
    monkeypatch.setattr(Writer, "delete", delete)


def everything_the_portal_does(cluster_id: int, namespace: str) -> None:
    client = clients.client_for(cluster_id)
    assert isinstance(client, HttpKubeClient)
    written = (
        *owned_kinds.WORKLOADS,
        owned_kinds.ROUTE,
        *owned_kinds.DEPENDENT_OBJECTS,
        *owned_kinds.TEAM_ADDRESS,
        owned_kinds.GATEWAY_ACCESS,
        owned_kinds.GATEWAY_TOKENS,
        (owned_kinds.ACCESS_POLICY[0], pipeline_manifests.FILTER_KIND),
    )
    for api_version, kind in (*written, *SHARED):
        if kind in PLURALS:
            known = ResourceType(api_version, kind, PLURALS[kind])
            client._discovered[api_version, kind] = known
        manifest = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": "requested", "namespace": namespace},
        }
        where: Mapping[str, Any] = {"api_version": api_version, "kind": kind}
        quietly(objects.dry_run, cluster_id=cluster_id, manifests=[manifest])
        quietly(objects.get, cluster_id=cluster_id, namespace=namespace, name="requested", **where)
        if (api_version, kind) not in SHARED:
            quietly(
                objects.list_objects, cluster_id=cluster_id, namespace=namespace, labels={}, **where
            )
        if (api_version, kind) not in (*SHARED, owned_kinds.GATEWAY_TOKENS):
            quietly(
                objects.delete,
                cluster_id=cluster_id,
                namespace=namespace,
                name="requested",
                **where,
            )
    what_jobs_do(cluster_id, namespace)
    what_fleet_actions_do(cluster_id, namespace)
    what_queues_need(client, namespace)
    secret = {"apiVersion": "v1", "kind": "Secret"}
    secret["metadata"] = {"name": "requested", "namespace": namespace}  # type: ignore[assignment]
    quietly(objects.apply, cluster_id=cluster_id, manifests=[secret])
    of_secret = {"api_version": "v1", "kind": "Secret", "namespace": namespace}
    quietly(objects.delete, cluster_id=cluster_id, name="requested", **of_secret)
    for of_kind in watch.WATCHED:
        quietly(client.list_all, of_kind)
        quietly(first_event, client, of_kind)
    quietly(client.list_all, capabilities.NODE_POOL)
    quietly(client.list_all, capabilities.PROMETHEUS)
    for rules in resource_types.DEVICE_TAINT_RULES:
        quietly(client.list_all, rules)
    quietly(client.get, api_server_probe.ENDPOINT_SLICE, "default", "kubernetes")
    quietly(client.get, gateway_probe.GATEWAY_CLASS, None, "requested")
    for api_version, kind in NAMED:
        where = {"api_version": api_version, "kind": kind, "namespace": None, "name": "requested"}
        quietly(objects.get, cluster_id=cluster_id, **where)
    quietly(objects.pod_log, cluster_id=cluster_id, namespace=namespace, pod="p", tail_lines=1)
    quietly(objects.list_pod_events, cluster_id=cluster_id, namespace=namespace)
    quietly(client.proxy_get, namespace, "p", 8002, "/metrics")
    quietly(client.proxy_request, PodRequest(namespace, "p", 8000, "/v2/models/m/infer", b"{}"))
    quietly(capabilities.probe, cluster_id=cluster_id)


def test_the_listed_permissions_are_those_the_portal_uses(
    cluster_id: int, namespace: str, requested: set[Permission], monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = {
        "serving.kserve.io": ["v1beta1"],
        "serving.knative.dev": ["v1"],
        "gateway.networking.k8s.io": ["v1"],
        "keda.sh": ["v1alpha1"],
        "kueue.x-k8s.io": ["v1beta2"],
        "resource.k8s.io": ["v1"],
    }
    monkeypatch.setattr(HttpKubeClient, "groups", lambda _self: everything)
    own_everything(monkeypatch)
    requested.clear()

    everything_the_portal_does(cluster_id, namespace)

    listed = {
        (verb, permission.group, permission.resource)
        for permission in (*PERMISSIONS, *ISTIO_KEYS, *FLEET_ACTIONS)
        for verb in permission.verbs
    }
    # Server-side apply creates what is missing; a merge patch of a node does not.
    requested.discard(("create", "", "nodes"))
    assert requested - listed == set()
    assert listed - requested == set()


def test_manifest_grants_each_permission_and_no_wildcard(db: None) -> None:
    role, binding = cluster_rbac("--group", "slipway-portal", "--cluster-wide")

    assert len(role["rules"]) == len(PERMISSIONS) + len(ISTIO_KEYS)
    assert "*" not in str(role["rules"])
    # The keys of callers are written; no Secret is ever read.
    secrets = [rule["verbs"] for rule in role["rules"] if "secrets" in rule["resources"]]
    assert secrets == [["create", "patch", "delete"]]
    assert binding["subjects"] == [
        {"kind": "Group", "name": "slipway-portal", "apiGroup": "rbac.authorization.k8s.io"}
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "slipway"


def test_writing_is_granted_only_in_the_namespaces_of_teams(db: None) -> None:
    make_team(slug="vision")

    made = cluster_rbac("--service-account", "slipway/portal")

    kinds = [(item["kind"], item["metadata"].get("namespace")) for item in made]
    assert kinds == [
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("Role", "vision"),
        ("RoleBinding", "vision"),
    ]
    everywhere = {resource for rule in made[0]["rules"] for resource in rule["resources"]}
    assert "services" not in everywhere
    assert made[3]["subjects"] == [
        {"kind": "ServiceAccount", "name": "portal", "namespace": "slipway"}
    ]


def test_istios_policies_are_written_in_the_namespaces_of_gateways_only(db: None) -> None:
    made = cluster_rbac("--namespaces", "vision", "--gateway-namespaces", "edge")

    places = {
        item["metadata"].get("namespace")
        for item in made
        for rule in item.get("rules", ())
        if "security.istio.io" in rule["apiGroups"]
        and "peerauthentications" not in rule["resources"]
    }
    assert places == {"edge"}


def test_fleet_actions_have_a_role_of_their_own_that_has_to_be_chosen(db: None) -> None:
    plain = cluster_rbac("--namespaces", "vision")
    chosen = cluster_rbac("--namespaces", "vision", "--fleet-actions")

    assert chosen[: len(plain)] == plain
    role, binding = chosen[len(plain) :]
    assert role["metadata"]["name"] == binding["roleRef"]["name"] == "slipway-fleet"
    granted = [(rule["resources"], rule["verbs"]) for rule in role["rules"]]
    assert granted == [
        (["nodes"], ["get", "patch"]),
        (["pods/eviction"], ["create"]),
        (["nodepools"], ["get", "create", "patch"]),
        (["ec2nodeclasses"], ["get", "list", "create", "patch"]),
    ]


def test_the_configurations_of_the_device_plugin_are_one_config_map(db: None) -> None:
    actions = cluster_rbac("--namespaces", "vision", "--fleet-actions")
    made = cluster_rbac(
        *("--namespaces", "vision", "--fleet-actions"),
        *("--device-plugin-config", "gpu-operator/sharing"),
    )

    role, binding = made[len(actions) :]
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "gpu-operator"
    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "verbs": ["get"],
            "resourceNames": ["sharing"],
        }
    ]


def test_manifest_is_accepted_by_the_schemas_of_kubernetes(db: None) -> None:
    import kubernetes_validate

    for manifest in cluster_rbac("--namespaces", "vision"):
        kubernetes_validate.validate(manifest, "1.36", strict=True)


def test_cluster_wide_form_says_what_it_grants(db: None) -> None:
    out = io.StringIO()

    call_command("cluster_rbac", "--cluster-wide", stdout=out)

    lines = [line for line in out.getvalue().splitlines() if line.startswith("#")]
    assert "EVERY namespace, kube-system" in lines[0]
    granted = {
        f"# - {', '.join(permission.verbs)} {permission}: {permission.why}"
        for permission in (*PERMISSIONS, *ISTIO_KEYS)
        if permission.is_per_team
    }
    assert granted <= set(lines)


def test_without_teams_and_namespaces_nothing_is_granted(db: None) -> None:
    with pytest.raises(CommandError, match="--cluster-wide"):
        cluster_rbac()
