"""The RBAC permissions that the portal needs on a cluster: the only list of them.

The manifest that an admin applies and the connection test are made from it. A test compares it with
every request that the portal makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fleet.clusters.domain import envoy_gateway
from fleet.clusters.domain.controllers import CONTROLLERS
from fleet.clusters.domain.permission import Permission

_READ = ("list", "watch")
# Server-side apply patches objects and creates missing ones.
_APPLY = ("create", "patch")


def _cluster(group: str, resource: str, verbs: tuple[str, ...], why: str) -> Permission:
    return Permission(group, resource, verbs, why, is_per_team=False)


_KSERVE, _APPS, _DRA = "serving.kserve.io", "apps", "resource.k8s.io"
_GATEWAY, _KUEUE = "gateway.networking.k8s.io", "kueue.x-k8s.io"

_CONTROLLER_NAMES = tuple(sorted({name for all_ in CONTROLLERS.values() for _, name in all_}))

_EVERYWHERE: tuple[Permission, ...] = (
    _cluster("", "nodes", _READ, "reading GPUs and their cost"),
    _cluster("", "pods", _READ, "tracking GPU leases and pending pods"),
    _cluster("", "namespaces", ("get", *_APPLY), "creating a namespace per team"),
    _cluster(_KSERVE, "inferenceservices", _READ, "watching served models"),
    _cluster(_APPS, "deployments", _READ, "watching served models"),
    _cluster(_GATEWAY, "httproutes", _READ, "watching routes"),
    _cluster("networking.k8s.io", "networkpolicies", _READ, "restoring deleted ones at once"),
    _cluster("policy", "poddisruptionbudgets", _READ, "restoring deleted ones at once"),
    _cluster("monitoring.coreos.com", "servicemonitors", _READ, "restoring deleted ones at once"),
    _cluster(_GATEWAY, "gateways", ("get",), "checking that the gateway is programmed"),
    _cluster(_GATEWAY, "gatewayclasses", ("get",), "checking that the gateway can mirror requests"),
    _cluster(_KSERVE, "localmodelcaches", ("get", *_APPLY), "caching models on nodes"),
    _cluster(_KSERVE, "clusterservingruntimes", ("get",), "serving models across nodes"),
    _cluster(_KSERVE, "localmodelnodegroups", ("get",), "reading where models are cached"),
    _cluster("scheduling.k8s.io", "priorityclasses", ("get",), "checking priority classes"),
    _cluster("monitoring.coreos.com", "prometheuses", ("list",), "labelling ServiceMonitors"),
    _cluster(_DRA, "deviceclasses", ("get",), "checking that GPUs can be claimed"),
    _cluster(_DRA, "resourceslices", _READ, "reading GPUs that can be claimed"),
    _cluster(_DRA, "resourceclaims", _READ, "reading which pods hold claimed GPUs"),
    _cluster(_DRA, "devicetaintrules", ("list",), "reading which of them are tainted"),
    _cluster("karpenter.sh", "nodepools", ("list",), "reading which nodes can start"),
    _cluster(_KUEUE, "localqueues", ("get", "list"), "offering the queues of teams"),
    _cluster(_KUEUE, "clusterqueues", ("get",), "saying why a queue admits nothing"),
    Permission(
        "",
        "configmaps",
        ("get",),
        "reading KServe's default mode",
        is_per_team=False,
        names=("inferenceservice-config",),
    ),
    Permission(
        "",
        "configmaps",
        ("get",),
        "reading what Knative allows in pods",
        is_per_team=False,
        names=("config-features",),
    ),
    Permission(
        "",
        "configmaps",
        ("get",),
        "reading whether Envoy Gateway runs scripts",
        is_per_team=False,
        names=(envoy_gateway.CONFIG_MAP[1],),
    ),
    Permission(
        "discovery.k8s.io",
        "endpointslices",
        ("get",),
        "checking that network policies admit the API server",
        is_per_team=False,
        names=("kubernetes",),
    ),
    Permission(
        _APPS,
        "deployments",
        ("get",),
        "reading installed versions",
        is_per_team=False,
        names=_CONTROLLER_NAMES,
    ),
)
_WRITE = ("get", "list", *_APPLY, "delete")
_WRITTEN: tuple[tuple[str, str], ...] = (
    (_KSERVE, "inferenceservices"),
    (_KSERVE, "llminferenceservices"),
    (_KSERVE, "inferencegraphs"),
    (_APPS, "deployments"),
    (_APPS, "daemonsets"),
    ("leaderworkerset.x-k8s.io", "leaderworkersets"),
    (_GATEWAY, "httproutes"),
    ("", "services"),
    ("", "configmaps"),
    ("", "persistentvolumeclaims"),
    (_DRA, "resourceclaimtemplates"),
    ("policy", "poddisruptionbudgets"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("networking.k8s.io", "networkpolicies"),
    ("keda.sh", "scaledobjects"),
    ("keda.sh", "triggerauthentications"),
    ("monitoring.coreos.com", "servicemonitors"),
    ("monitoring.coreos.com", "podmonitors"),
    ("security.istio.io", "peerauthentications"),
    ("gateway.envoyproxy.io", "securitypolicies"),
    ("gateway.envoyproxy.io", "backendtrafficpolicies"),
    ("gateway.envoyproxy.io", "envoyextensionpolicies"),
    ("gateway.envoyproxy.io", "httproutefilters"),
)
_IN_TEAMS: tuple[Permission, ...] = (
    *(Permission(group, plural, _WRITE, "serving a revision") for group, plural in _WRITTEN),
    Permission(_KSERVE, "servingruntimes", ("get", *_APPLY), "creating the team's Triton runtime"),
    Permission(
        "", "serviceaccounts", ("get", *_APPLY), "creating the service account that reads models"
    ),
    # Neither get nor list: what it wrote is in its own rows.
    Permission("", "secrets", (*_APPLY, "delete"), "writing the keys of callers"),
    Permission("batch", "jobs", ("get", "list", *_APPLY, "delete"), "load tests and batch jobs"),
    Permission(
        "keda.sh", "scaledjobs", ("get", *_APPLY, "delete"), "batch jobs that drain a queue"
    ),
    Permission("", "events", ("list",), "reading why pods do not start"),
    Permission(_KUEUE, "workloads", ("list",), "reading which pods wait in a queue"),
    Permission(
        f"visibility.{_KUEUE}", "localqueues/pendingworkloads", ("get",), "showing positions"
    ),
    Permission("", "resourcequotas", ("get", *_APPLY), "enforcing the team's GPU quota"),
    Permission("", "limitranges", ("get", *_APPLY), "setting default container limits"),
    Permission("", "pods/log", ("get",), "reading pod logs"),
    Permission(
        "",
        "pods/proxy",
        ("get", "create"),
        "reading metrics and sending trials and golden requests",
    ),
)
# In the Gateway's namespace, and needed with Istio only.
ISTIO_KEYS: tuple[Permission, ...] = (
    Permission("security.istio.io", "authorizationpolicies", _WRITE, "checking callers with Istio"),
    Permission(
        "security.istio.io",
        "requestauthentications",
        ("get", "list", *_APPLY),
        "having Istio verify the keys of callers",
    ),
)
PERMISSIONS: tuple[Permission, ...] = (*_EVERYWHERE, *_IN_TEAMS)
# In the namespaces of the gateway and its proxies only. Without the first lost requests are not counted there.
_AT_GATEWAYS: tuple[Permission, ...] = (
    Permission("", "pods/proxy", ("get",), "counting requests that never come back"),
    *ISTIO_KEYS,
)
# In the namespaces of dcgm-exporter, where no Prometheus has its metrics, and of neuron-monitor.
_AT_EXPORTERS: tuple[Permission, ...] = (
    Permission("", "pods/proxy", ("get",), "reading errors of GPUs and the use of Neuron devices"),
)
# Only where people may change nodes by request (`manage.py cluster_rbac --fleet-actions`).
FLEET_ACTIONS: tuple[Permission, ...] = (
    _cluster("", "nodes", ("get", "patch"), "cordoning and uncordoning nodes"),
    _cluster("", "pods/eviction", ("create",), "draining nodes, as disruption budgets allow"),
    _cluster("karpenter.sh", "nodepools", ("get", *_APPLY), "changing and creating node pools"),
    _cluster(
        "karpenter.k8s.aws",
        "ec2nodeclasses",
        ("get", "list", *_APPLY),
        "changing and creating EC2NodeClasses",
    ),
)


def manifests(
    *,
    account: Mapping[str, str],
    name: str = "slipway",
    team_namespaces: Sequence[str] = (),
    gateway_namespaces: Sequence[str] = (),
    exporter_namespaces: Sequence[str] = (),
    has_fleet_actions: bool = False,
    device_plugin_config: tuple[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return the ClusterRole and its binding. With `team_namespaces`, write access is granted only in those, and
    the gateway's proxies are read in `gateway_namespaces`, dcgm-exporter in `exporter_namespaces`. Fleet actions
    have a role of their own; with `device_plugin_config`, a namespace and a name, they may read that ConfigMap.

    `account` is the subject: {"kind": "Group", "name": …} or a ServiceAccount with its namespace.
    """
    of_fleet = f"{name}-fleet"
    fleet = [_cluster_role(of_fleet, FLEET_ACTIONS), _cluster_binding(of_fleet, account)]
    fleet = fleet if has_fleet_actions else []
    if device_plugin_config:
        namespace, config_map = device_plugin_config
        fleet += [_role(of_fleet, namespace, [_device_plugin_config(config_map)])]
        fleet += [_binding(of_fleet, namespace, account)]
    if not team_namespaces:
        everything = [*PERMISSIONS, *ISTIO_KEYS]
        return [_cluster_role(name, everything), _cluster_binding(name, account), *fleet]
    everywhere = [permission for permission in PERMISSIONS if not permission.is_per_team]
    per_team = [permission for permission in PERMISSIONS if permission.is_per_team]
    made = [_cluster_role(name, everywhere), _cluster_binding(name, account)]
    for namespace in team_namespaces:
        made += [_role(name, namespace, per_team), _binding(name, namespace, account)]
    for suffix, namespaces, permissions in (
        ("gateway", gateway_namespaces, _AT_GATEWAYS),
        ("gpu-metrics", exporter_namespaces, _AT_EXPORTERS),
    ):
        for namespace in namespaces:
            made += [_role(f"{name}-{suffix}", namespace, permissions)]
            made += [_binding(f"{name}-{suffix}", namespace, account)]
    return [*made, *fleet]


def _device_plugin_config(name: str) -> Permission:
    why = "reading the configurations of the device plugin"
    return Permission("", "configmaps", ("get",), why, is_per_team=False, names=(name,))


def describe_cluster_wide() -> str:
    """Describe what the manifest without namespaces grants, as YAML comments."""
    lines = [
        "This grants the permissions below in EVERY namespace, kube-system included.",
        "Anyone who holds them can run any image under any service account, and so become an",
        "administrator of the cluster. Omit --cluster-wide to grant them in team namespaces only.",
        *(
            f"- {', '.join(permission.verbs)} {permission}: {permission.why}"
            for permission in (*PERMISSIONS, *ISTIO_KEYS)
            if permission.is_per_team
        ),
    ]
    return "".join(f"# {line}\n" for line in lines)


def _rules(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """Return one rule per permission, so that each can be traced to its reason."""
    return [
        {
            "apiGroups": [permission.group],
            "resources": [permission.resource],
            "verbs": list(permission.verbs),
        }
        | ({"resourceNames": list(permission.names)} if permission.names else {})
        for permission in permissions
    ]


_RBAC = "rbac.authorization.k8s.io"
_VERSION = f"{_RBAC}/v1"
_LABELS = {"app.kubernetes.io/managed-by": "slipway"}


def _cluster_role(name: str, permissions: Iterable[Permission]) -> dict[str, Any]:
    return {
        "apiVersion": _VERSION,
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": _LABELS},
        "rules": _rules(permissions),
    }


def _role(name: str, namespace: str, permissions: Iterable[Permission]) -> dict[str, Any]:
    return {
        "apiVersion": _VERSION,
        "kind": "Role",
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
        "rules": _rules(permissions),
    }


def _cluster_binding(name: str, account: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": _VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": _LABELS},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [_subject(account)],
    }


def _binding(name: str, namespace: str, account: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": _VERSION,
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
        "subjects": [_subject(account)],
    }


def _subject(account: Mapping[str, str]) -> dict[str, str]:
    is_service_account = account["kind"] == "ServiceAccount"
    return dict(account) | ({} if is_service_account else {"apiGroup": _RBAC})
