"""Pods, and the Deployments that make them."""

from __future__ import annotations

from typing import Any

from tests.fidelity.row import Json, Path, Rows, removed

ROWS = Rows()

_AMOUNTS = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}
_CONTAINER: Json = {
    "name": "server",
    "image": "nvcr.io/nvidia/tritonserver:26.07-py3",
    "env": [{"name": "A", "value": "b"}, {"name": "HOME", "value": "/tmp"}],
    "ports": [{"name": "http", "containerPort": 8080}, {"name": "grpc", "containerPort": 9000}],
    "resources": {"requests": _AMOUNTS, "limits": dict(_AMOUNTS)},
    "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],
    "readinessProbe": {"httpGet": {"path": "/v2/health/ready", "port": "http"}},
}
_DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "fidelity", "labels": {"app": "fidelity"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "fidelity"}},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
        "template": {
            "metadata": {"labels": {"app": "fidelity"}},
            "spec": {
                "containers": [_CONTAINER],
                "initContainers": [
                    {"name": "fetch", "image": "kserve/storage-initializer:v0.20.0"}
                ],
                "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
                "nodeSelector": {"node.kubernetes.io/instance-type": "g5.xlarge"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "terminationGracePeriodSeconds": 30,
            },
        },
    },
}
_SPEC = ("spec",)
_TEMPLATE = ("spec", "template")
_POD_SPEC = (*_TEMPLATE, "spec")
_SERVER = (*_POD_SPEC, "containers", 0)
_PROBE = (*_SERVER, "readinessProbe")
_ROLLING = (*_SPEC, "strategy", "rollingUpdate")

ROWS.good("deployment", _DEPLOYMENT)
_FAULTS: tuple[tuple[str, Path, Any], ...] = (
    ("negative-replicas", (*_SPEC, "replicas"), -1),
    ("text-for-replicas", (*_SPEC, "replicas"), "two"),
    ("unknown-field", (*_SPEC, "replicaz"), 2),
    ("other-selector", (*_SPEC, "selector"), {"matchLabels": {"app": "other"}}),
    ("empty-selector", (*_SPEC, "selector"), {}),
    ("strategy", (*_SPEC, "strategy", "type"), "BlueGreen"),
    ("recreate-with-surge", (*_SPEC, "strategy", "type"), "Recreate"),
    ("no-surge-and-none-unavailable", (*_ROLLING, "maxSurge"), 0),
    ("surge-in-percent-without-sign", (*_ROLLING, "maxSurge"), "25"),
    ("deadline-too-short", (*_SPEC, "progressDeadlineSeconds"), 0),
    ("label-of-template", (*_TEMPLATE, "metadata", "labels", "team"), "no spaces"),
    ("no-containers", (*_POD_SPEC, "containers"), []),
    ("restart-policy", (*_POD_SPEC, "restartPolicy"), "Never"),
    ("negative-grace-period", (*_POD_SPEC, "terminationGracePeriodSeconds"), -1),
    ("containers-twice", (*_POD_SPEC, "containers"), [_CONTAINER, _CONTAINER]),
    ("container-name", (*_SERVER, "name"), "The Server"),
    ("init-container-of-the-same-name", (*_POD_SPEC, "initContainers", 0, "name"), "server"),
    ("no-image", (*_SERVER, "image"), ""),
    ("pull-policy", (*_SERVER, "imagePullPolicy"), "Sometimes"),
    ("port-too-large", (*_SERVER, "ports", 0, "containerPort"), 70000),
    ("port-as-text", (*_SERVER, "ports", 0, "containerPort"), "http"),
    ("port-name-too-long", (*_SERVER, "ports", 0, "name"), "a-port-with-a-long-name"),
    ("port-names-twice", (*_SERVER, "ports", 1, "name"), "http"),
    ("ports-twice", (*_SERVER, "ports", 1, "containerPort"), 8080),
    ("env-as-map", (*_SERVER, "env"), {"A": "b"}),
    ("env-without-name", (*_SERVER, "env", 0), {"value": "b"}),
    ("env-name", (*_SERVER, "env", 0, "name"), "A=B"),
    ("env-twice", (*_SERVER, "env", 1, "name"), "A"),
    (
        "env-value-and-source",
        (*_SERVER, "env", 0, "valueFrom"),
        {"secretKeyRef": {"name": "s", "key": "k"}},
    ),
    ("no-quantity", (*_SERVER, "resources", "limits", "cpu"), "a lot"),
    ("negative-quantity", (*_SERVER, "resources", "requests", "cpu"), "-1"),
    ("memory-over-limit", (*_SERVER, "resources", "requests", "memory"), "16Gi"),
    ("cpu-over-limit", (*_SERVER, "resources", "requests", "cpu"), "2500m"),
    ("half-a-gpu", (*_SERVER, "resources", "limits", "nvidia.com/gpu"), "0.5"),
    ("gpus-over-limit", (*_SERVER, "resources", "requests", "nvidia.com/gpu"), "2"),
    ("resource-without-domain", (*_SERVER, "resources", "limits"), {"gpus": "1"}),
    ("mount-of-no-volume", (*_SERVER, "volumeMounts", 0, "name"), "weights"),
    ("mount-path-empty", (*_SERVER, "volumeMounts", 0, "mountPath"), ""),
    ("volumes-twice", (*_POD_SPEC, "volumes"), [{"name": "scratch", "emptyDir": {}}] * 2),
    ("volume-without-source", (*_POD_SPEC, "volumes", 0), {"name": "scratch"}),
    (
        "volume-of-two-sources",
        (*_POD_SPEC, "volumes", 0, "secret"),
        {"secretName": "keys"},
    ),
    ("volume-name", (*_POD_SPEC, "volumes", 0, "name"), "Scratch Space"),
    ("probe-of-two-handlers", (*_PROBE, "tcpSocket"), {"port": 8080}),
    ("probe-without-handler", _PROBE, {"periodSeconds": 5}),
    ("probe-port-too-large", (*_PROBE, "httpGet", "port"), 70000),
    ("probe-scheme", (*_PROBE, "httpGet", "scheme"), "GOPHER"),
    ("probe-period-negative", (*_PROBE, "periodSeconds"), -5),
    (
        "probe-success-threshold",
        (*_SERVER, "livenessProbe"),
        {"tcpSocket": {"port": 1}, "successThreshold": 2},
    ),
    ("negative-user", (*_SERVER, "securityContext"), {"runAsUser": -1}),
    ("toleration-with-value", (*_POD_SPEC, "tolerations", 0, "value"), "yes"),
    ("toleration-operator", (*_POD_SPEC, "tolerations", 0, "operator"), "Like"),
    ("toleration-effect", (*_POD_SPEC, "tolerations", 0, "effect"), "Never"),
    ("node-selector-value", (*_POD_SPEC, "nodeSelector"), {"zone": "no spaces"}),
    ("dns-policy", (*_POD_SPEC, "dnsPolicy"), "Nowhere"),
    ("service-account-name", (*_POD_SPEC, "serviceAccountName"), "Not_A_Name"),
    (
        "spread-skew",
        (*_POD_SPEC, "topologySpreadConstraints"),
        [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    ),
    (
        "affinity-operator",
        (*_POD_SPEC, "affinity"),
        {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "Like", "values": ["a"]}]}
                    ]
                }
            }
        },
    ),
)
for name, path, value in _FAULTS:
    ROWS.changed(f"deployment-{name}", _DEPLOYMENT, (path, value))
ROWS.changed("deployment-without-selector", _DEPLOYMENT, removed(*_SPEC, "selector"))
ROWS.changed("deployment-without-template", _DEPLOYMENT, removed(*_TEMPLATE))
ROWS.changed("deployment-gpus-without-limit", _DEPLOYMENT, removed(*_SERVER, "resources", "limits"))
ROWS.changed(
    "created-deployment-text-for-replicas",
    _DEPLOYMENT,
    ((*_SPEC, "replicas"), "two"),
    is_created=True,
)
ROWS.changed(
    "created-deployment-unknown-field", _DEPLOYMENT, ((*_SPEC, "replicaz"), 2), is_created=True
)
ROWS.changed(
    "created-deployment-containers-twice",
    _DEPLOYMENT,
    ((*_POD_SPEC, "containers"), [_CONTAINER, _CONTAINER]),
    is_created=True,
)
ROWS.changed(
    "created-deployment-volumes-twice",
    _DEPLOYMENT,
    ((*_POD_SPEC, "volumes"), [{"name": "scratch", "emptyDir": {}}] * 2),
    is_created=True,
)
ROWS.changed(
    "created-deployment-mount-paths-twice",
    _DEPLOYMENT,
    ((*_SERVER, "volumeMounts"), _CONTAINER["volumeMounts"] * 2),
    is_created=True,
)

_POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "fidelity"},
    "spec": {"containers": [{"name": "server", "image": "nginx:1"}]},
}
ROWS.good("pod", _POD)
ROWS.changed("pod-restart-policy", _POD, (("spec", "restartPolicy"), "Sometimes"))
ROWS.changed(
    "pod-host-port-missing",
    _POD,
    (("spec", "hostNetwork"), True),
    (("spec", "containers", 0, "ports"), [{"containerPort": 80, "hostPort": 81}]),
)
ROWS.changed("pod-unknown-priority-class", _POD, (("spec", "priorityClassName"), "nobody"))
ROWS.changed("pod-unknown-service-account", _POD, (("spec", "serviceAccountName"), "nobody"))
ROWS.changed("pod-name-empty", _POD, (("metadata", "name"), ""), is_created=True)
