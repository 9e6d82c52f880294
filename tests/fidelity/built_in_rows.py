"""Kinds that every API server has, but for pods."""

from __future__ import annotations

from typing import Any

from tests.fidelity.row import Json, Rows, removed

ROWS = Rows()


def _metadata(name: str = "fidelity") -> Json:
    return {"name": name, "labels": {"app": "fidelity"}}


def _object(api_version: str, kind: str, **fields: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": _metadata(), **fields}


_SERVICE = _object(
    "v1",
    "Service",
    spec={
        "selector": {"app": "fidelity"},
        "ports": [
            {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"},
            {"name": "grpc", "port": 9000, "targetPort": 9000},
        ],
    },
)
ROWS.good("service", _SERVICE)
ROWS.changed("service-port-too-large", _SERVICE, (("spec", "ports", 0, "port"), 70000))
ROWS.changed("service-port-zero", _SERVICE, (("spec", "ports", 0, "port"), 0))
ROWS.changed("service-target-port-too-large", _SERVICE, (("spec", "ports", 1, "targetPort"), 65536))
ROWS.changed("service-target-port-name", _SERVICE, (("spec", "ports", 0, "targetPort"), "Not_It"))
ROWS.changed("service-ports-without-names", _SERVICE, removed("spec", "ports", 0, "name"))
ROWS.changed("service-port-names-twice", _SERVICE, (("spec", "ports", 1, "name"), "http"))
ROWS.changed("service-ports-twice", _SERVICE, (("spec", "ports", 1, "port"), 80))
ROWS.changed("service-without-ports", _SERVICE, (("spec", "ports"), []))
ROWS.changed("service-protocol", _SERVICE, (("spec", "ports", 0, "protocol"), "HTTP"))
ROWS.changed("service-type", _SERVICE, (("spec", "type"), "Private"))
ROWS.changed("service-cluster-ip", _SERVICE, (("spec", "clusterIP"), "10.96.0"))
ROWS.changed("service-name-from-digit", _SERVICE, (("metadata", "name"), "1st"))
ROWS.changed("service-name-in-capitals", _SERVICE, (("metadata", "name"), "Fidelity"))
ROWS.changed("service-selector-value", _SERVICE, (("spec", "selector", "app"), "no spaces"))
ROWS.changed("service-unknown-field", _SERVICE, (("spec", "portz"), []))

_METRIC = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_HPA = _object(
    "autoscaling/v2",
    "HorizontalPodAutoscaler",
    spec={
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "fidelity"},
        "minReplicas": 1,
        "maxReplicas": 4,
        "metrics": [_METRIC],
    },
)
_TARGET = ("spec", "metrics", 0, "resource", "target")
ROWS.good("hpa", _HPA)
ROWS.changed("hpa-min-over-max", _HPA, (("spec", "minReplicas"), 5))
ROWS.changed("hpa-max-zero", _HPA, (("spec", "maxReplicas"), 0))
ROWS.changed("hpa-min-zero", _HPA, (("spec", "minReplicas"), 0))
ROWS.changed("hpa-utilization-zero", _HPA, ((*_TARGET, "averageUtilization"), 0))
ROWS.changed("hpa-target-without-value", _HPA, removed(*_TARGET, "averageUtilization"))
ROWS.changed("hpa-metric-type", _HPA, (("spec", "metrics", 0, "type"), "Guess"))
ROWS.changed("hpa-metric-without-source", _HPA, removed("spec", "metrics", 0, "resource"))
ROWS.changed("hpa-without-target", _HPA, removed("spec", "scaleTargetRef"))

_PDB = _object(
    "policy/v1",
    "PodDisruptionBudget",
    spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "fidelity"}}},
)
ROWS.good("pdb", _PDB)
ROWS.changed("pdb-min-and-max", _PDB, (("spec", "maxUnavailable"), 1))
ROWS.changed(
    "pdb-lets-unready-pods-go", _PDB, (("spec", "unhealthyPodEvictionPolicy"), "AlwaysAllow")
)
ROWS.changed("pdb-eviction-policy", _PDB, (("spec", "unhealthyPodEvictionPolicy"), "Always"))
ROWS.changed("pdb-percent", _PDB, (("spec", "minAvailable"), "150%"))
ROWS.changed("pdb-text", _PDB, (("spec", "minAvailable"), "half"))
ROWS.changed("pdb-negative", _PDB, (("spec", "minAvailable"), -1))
ROWS.changed("pdb-selector-value", _PDB, (("spec", "selector", "matchLabels", "app"), "no spaces"))
ROWS.changed(
    "pdb-selector-operator",
    _PDB,
    (("spec", "selector", "matchExpressions"), [{"key": "app", "operator": "Like"}]),
)
ROWS.changed(
    "pdb-selector-without-values",
    _PDB,
    (("spec", "selector", "matchExpressions"), [{"key": "app", "operator": "In"}]),
)

_POLICY = _object(
    "networking.k8s.io/v1",
    "NetworkPolicy",
    spec={
        "podSelector": {"matchLabels": {"app": "fidelity"}},
        "policyTypes": ["Ingress"],
        "ingress": [
            {
                "from": [
                    {"namespaceSelector": {"matchLabels": {"team": "a"}}},
                    {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
                ],
                "ports": [{"port": 8080, "protocol": "TCP"}, {"port": 9000, "protocol": "TCP"}],
            }
        ],
    },
)
_FROM = ("spec", "ingress", 0, "from")
_POLICY_PORT = ("spec", "ingress", 0, "ports", 0)
ROWS.good("policy", _POLICY)
ROWS.changed("policy-port-too-large", _POLICY, ((*_POLICY_PORT, "port"), 70000))
ROWS.changed("policy-protocol", _POLICY, ((*_POLICY_PORT, "protocol"), "HTTP"))
ROWS.changed("policy-end-port", _POLICY, ((*_POLICY_PORT, "endPort"), 80))
ROWS.changed("policy-cidr", _POLICY, ((*_FROM, 1, "ipBlock", "cidr"), "10.0.0.0"))
ROWS.changed("policy-except", _POLICY, ((*_FROM, 1, "ipBlock", "except"), ["11.0.0.0/8"]))
ROWS.changed("policy-empty-peer", _POLICY, ((*_FROM, 0), {}))
ROWS.changed("policy-peer-of-two-kinds", _POLICY, ((*_FROM, 1, "podSelector"), {"matchLabels": {}}))
ROWS.changed("policy-type", _POLICY, (("spec", "policyTypes"), ["Both"]))

_QUOTA = _object("v1", "ResourceQuota", spec={"hard": {"requests.nvidia.com/gpu": "4"}})
ROWS.good("quota", _QUOTA)
ROWS.changed("quota-negative", _QUOTA, (("spec", "hard", "pods"), "-1"))
ROWS.changed("quota-fraction-of-pods", _QUOTA, (("spec", "hard", "pods"), "1.5"))
ROWS.changed("quota-name-without-domain", _QUOTA, (("spec", "hard", "gpus"), "1"))
ROWS.changed("quota-no-quantity", _QUOTA, (("spec", "hard", "pods"), "many"))

_LIMITS = _object(
    "v1",
    "LimitRange",
    spec={"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "4"}}]},
)
ROWS.good("limits", _LIMITS)
ROWS.changed("limits-min-over-max", _LIMITS, (("spec", "limits", 0, "min"), {"cpu": "8"}))
ROWS.changed("limits-default-over-max", _LIMITS, (("spec", "limits", 0, "default"), {"cpu": "8"}))
ROWS.changed("limits-type-twice", _LIMITS, (("spec", "limits"), [_LIMITS["spec"]["limits"][0]] * 2))

_CLAIM = _object(
    "v1",
    "PersistentVolumeClaim",
    spec={"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "100Gi"}}},
)
ROWS.good("claim", _CLAIM)
ROWS.changed("claim-without-a-mode", _CLAIM, (("spec", "accessModes"), []))
ROWS.changed("claim-mode", _CLAIM, (("spec", "accessModes"), ["ReadWriteAll"]))
ROWS.changed("claim-without-a-size", _CLAIM, (("spec", "resources"), {"requests": {}}))
ROWS.changed("claim-size", _CLAIM, (("spec", "resources", "requests", "storage"), "much"))

_SECRET = _object("v1", "Secret", type="Opaque", data={"key": "dmFsdWU="})
ROWS.good("secret", _SECRET)
ROWS.changed("secret-key", _SECRET, (("data",), {"a/b": "dmFsdWU="}))
ROWS.changed("secret-not-base64", _SECRET, (("data", "key"), "not base64!"))
ROWS.changed("secret-without-its-keys", _SECRET, (("type",), "kubernetes.io/tls"))

_CONFIG = _object("v1", "ConfigMap", data={"key": "value"})
ROWS.good("config-map", _CONFIG)
ROWS.changed("config-map-key", _CONFIG, (("data",), {"a b": "value"}))
ROWS.changed("config-map-number", _CONFIG, (("data", "key"), 7))
ROWS.changed("config-map-key-twice", _CONFIG, (("binaryData",), {"key": "dmFsdWU="}))
ROWS.changed("config-map-name", _CONFIG, (("metadata", "name"), "Not_A_Name"))
ROWS.changed("config-map-label", _CONFIG, (("metadata", "labels", "app"), "no spaces"))
ROWS.changed("config-map-too-large", _CONFIG, (("data", "key"), "x" * (2**20 + 1)))

_ACCOUNT = _object("v1", "ServiceAccount", automountServiceAccountToken=False)
ROWS.good("service-account", _ACCOUNT)
ROWS.changed("service-account-type", _ACCOUNT, (("automountServiceAccountToken",), "no"))

ROWS.good("namespace", _object("v1", "Namespace"))
ROWS.changed("namespace-name", _object("v1", "Namespace"), (("metadata", "name"), "with.dots"))
