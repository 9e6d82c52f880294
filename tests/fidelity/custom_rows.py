"""Kinds of the Gateway API, KServe, KEDA and the Prometheus operator."""

from __future__ import annotations

from typing import Any

from tests.fidelity.row import Json, Path, Rows, removed

ROWS = Rows()


def _object(api_version: str, kind: str, spec: Json) -> Json:
    metadata = {"name": "fidelity", "labels": {"app": "fidelity"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _header(name: str) -> Json:
    return {"name": name, "value": "1"}


_PREFIX = {"type": "PathPrefix", "value": "/team/model"}
_REWRITE = {
    "type": "URLRewrite",
    "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
}
_HTTP_ROUTE = _object(
    "gateway.networking.k8s.io/v1",
    "HTTPRoute",
    {
        "parentRefs": [{"name": "slipway", "namespace": "slipway-gateway"}],
        "hostnames": ["models.example.com"],
        "rules": [
            {
                "matches": [{"path": _PREFIX, "headers": [_header("x-variant")]}],
                "filters": [_REWRITE],
                "backendRefs": [
                    {"name": "fidelity-r1", "port": 80, "weight": 90},
                    {"name": "fidelity-r2", "port": 80, "weight": 10},
                ],
                "timeouts": {"request": "60s"},
            }
        ],
    },
)
_RULE = ("spec", "rules", 0)
_BACKEND = (*_RULE, "backendRefs", 0)
_MATCH = (*_RULE, "matches", 0)
_REDIRECT = {"type": "RequestRedirect", "requestRedirect": {"statusCode": 302}}
ROWS.good("http-route", _HTTP_ROUTE)
_ROUTE_FAULTS: tuple[tuple[str, Path, Any], ...] = (
    ("weight-too-large", (*_BACKEND, "weight"), 1_000_001),
    ("weight-negative", (*_BACKEND, "weight"), -1),
    ("weight-as-text", (*_BACKEND, "weight"), "90"),
    ("port-too-large", (*_BACKEND, "port"), 70000),
    ("backend-name-empty", (*_BACKEND, "name"), ""),
    ("unknown-field", (*_RULE, "backends"), []),
    ("path-without-slash", (*_MATCH, "path", "value"), "team"),
    ("path-with-two-slashes", (*_MATCH, "path", "value"), "/team//model"),
    ("path-with-dots", (*_MATCH, "path", "value"), "/team/../model"),
    ("path-type", (*_MATCH, "path", "type"), "Suffix"),
    ("path-too-long", (*_MATCH, "path", "value"), "/" + "a" * 1024),
    ("method", (*_MATCH, "method"), "FETCH"),
    ("headers-twice", (*_MATCH, "headers"), [_header("a"), _header("a")]),
    ("header-name", (*_MATCH, "headers"), [_header("a b")]),
    ("filter-type", (*_RULE, "filters"), [{"type": "Compress"}]),
    ("filter-of-another-type", (*_RULE, "filters", 0, "type"), "RequestMirror"),
    ("rewrites-twice", (*_RULE, "filters"), [_REWRITE, _REWRITE]),
    ("redirect-and-backends", (*_RULE, "filters"), [_REDIRECT]),
    ("prefix-rewrite-of-an-exact-path", (*_MATCH, "path", "type"), "Exact"),
    ("timeout", (*_RULE, "timeouts", "request"), "a minute"),
    (
        "backend-timeout-over-request",
        (*_RULE, "timeouts"),
        {"request": "1s", "backendRequest": "2s"},
    ),
    ("hostname-address", ("spec", "hostnames"), ["10.0.0.1:80"]),
    ("hostname-in-capitals", ("spec", "hostnames"), ["Models.example.com"]),
    ("too-many-rules", ("spec", "rules"), [{"matches": [{"path": _PREFIX}]}] * 17),
    ("too-many-backends", (*_RULE, "backendRefs"), [{"name": "a", "port": 80}] * 17),
    ("too-many-hostnames", ("spec", "hostnames"), [f"h{n}.example.com" for n in range(17)]),
    ("rules-as-map", ("spec", "rules"), {}),
    (
        "parents-twice",
        ("spec", "parentRefs"),
        [{"name": "slipway", "namespace": "slipway-gateway"}] * 2,
    ),
)
for name, path, value in _ROUTE_FAULTS:
    ROWS.changed(f"http-route-{name}", _HTTP_ROUTE, (path, value))
ROWS.changed("http-route-backend-without-port", _HTTP_ROUTE, removed(*_BACKEND, "port"))
ROWS.changed("http-route-backend-without-name", _HTTP_ROUTE, removed(*_BACKEND, "name"))
ROWS.changed(
    "created-http-route-weight-as-text",
    _HTTP_ROUTE,
    ((*_BACKEND, "weight"), "90"),
    is_created=True,
)
ROWS.changed(
    "created-http-route-unknown-field", _HTTP_ROUTE, ((*_RULE, "backends"), []), is_created=True
)

_GRPC_ROUTE = _object(
    "gateway.networking.k8s.io/v1",
    "GRPCRoute",
    {
        "parentRefs": [{"name": "slipway", "namespace": "slipway-gateway"}],
        "rules": [
            {
                "matches": [{"method": {"service": "inference.GRPCInferenceService"}}],
                "backendRefs": [{"name": "fidelity-r1", "port": 9000, "weight": 1}],
            }
        ],
    },
)
ROWS.good("grpc-route", _GRPC_ROUTE)
ROWS.changed("grpc-route-service", _GRPC_ROUTE, ((*_MATCH, "method", "service"), "not a service"))
ROWS.changed("grpc-route-without-port", _GRPC_ROUTE, removed(*_BACKEND, "port"))

_KSERVE = "serving.kserve.io/v1beta1"
_AMOUNTS = {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "1"}
_SERVICE = _object(
    _KSERVE,
    "InferenceService",
    {
        "predictor": {
            "minReplicas": 1,
            "maxReplicas": 2,
            "model": {
                "modelFormat": {"name": "onnx"},
                "runtime": "fidelity-triton",
                "storageUri": "s3://models/detector/1/",
                "resources": {"requests": _AMOUNTS, "limits": dict(_AMOUNTS)},
            },
        }
    },
)
_PREDICTOR = ("spec", "predictor")
_MODEL = (*_PREDICTOR, "model")
ROWS.good("inference-service", _SERVICE)
_SERVICE_FAULTS: tuple[tuple[str, Path, Any], ...] = (
    ("unknown-field", ("spec", "predictorr"), {}),
    ("unknown-field-of-model", (*_MODEL, "storageUrl"), "s3://models/"),
    ("replicas-as-text", (*_PREDICTOR, "minReplicas"), "one"),
    ("replicas-negative", (*_PREDICTOR, "minReplicas"), -1),
    ("min-over-max", (*_PREDICTOR, "minReplicas"), 3),
    ("format-without-name", (*_MODEL, "modelFormat"), {}),
    ("name-from-digit", ("metadata", "name"), "1st"),
    ("name-with-dot", ("metadata", "name"), "a.b"),
    ("two-models", (*_PREDICTOR, "sklearn"), {"storageUri": "s3://models/b/"}),
    ("storage-scheme", (*_MODEL, "storageUri"), "ftp://models/a"),
    ("no-quantity", (*_MODEL, "resources", "limits", "cpu"), "a lot"),
    ("memory-over-limit", (*_MODEL, "resources", "requests", "memory"), "4Gi"),
    ("port-too-large", (*_MODEL, "ports"), [{"containerPort": 70000}]),
    ("timeout-negative", (*_PREDICTOR, "timeout"), -1),
    ("containers-as-map", (*_PREDICTOR, "containers"), {}),
    ("scale-metric", (*_PREDICTOR, "scaleMetric"), "luck"),
    (
        "autoscaler",
        ("metadata", "annotations"),
        {"serving.kserve.io/autoscalerClass": "oracle"},
    ),
)
for name, path, value in _SERVICE_FAULTS:
    ROWS.changed(f"inference-service-{name}", _SERVICE, (path, value))
_RUNTIME = _object(
    "serving.kserve.io/v1alpha1",
    "ServingRuntime",
    {
        "supportedModelFormats": [{"name": "onnx", "version": "1", "autoSelect": False}],
        "protocolVersions": ["v2"],
        "containers": [
            {
                "name": "kserve-container",
                "image": "nvcr.io/nvidia/tritonserver:26.07-py3",
                "args": ["tritonserver", "--model-store=/mnt/models"],
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
            }
        ],
    },
)
_RUNTIME_CONTAINER = ("spec", "containers", 0)
ROWS.good("runtime", _RUNTIME)
ROWS.changed("runtime-unknown-field", _RUNTIME, (("spec", "image"), "nginx"))
ROWS.changed("runtime-without-containers", _RUNTIME, removed("spec", "containers"))
ROWS.changed("runtime-container-without-name", _RUNTIME, removed(*_RUNTIME_CONTAINER, "name"))
ROWS.changed("runtime-env-as-map", _RUNTIME, ((*_RUNTIME_CONTAINER, "env"), {"A": "b"}))
ROWS.changed(
    "runtime-ports-twice",
    _RUNTIME,
    ((*_RUNTIME_CONTAINER, "ports"), _RUNTIME["spec"]["containers"][0]["ports"] * 2),
)
ROWS.changed(
    "runtime-no-quantity",
    _RUNTIME,
    ((*_RUNTIME_CONTAINER, "resources"), {"limits": {"cpu": "a lot"}}),
)
_TWICE: Any = [{"name": "onnx", "autoSelect": True, "priority": 1}] * 2
ROWS.changed("runtime-priority-twice", _RUNTIME, (("spec", "supportedModelFormats"), _TWICE))

_LLM = _object(
    "serving.kserve.io/v1alpha2",
    "LLMInferenceService",
    {
        "model": {"uri": "hf://org/model", "name": "org/model"},
        "replicas": 1,
        "template": {"containers": [{"name": "main", "image": "vllm/vllm-openai:v0.20.0"}]},
    },
)
ROWS.good("llm", _LLM)
ROWS.changed("llm-without-model", _LLM, removed("spec", "model"))
ROWS.changed("llm-unknown-field", _LLM, (("spec", "modell"), {}))

_SCALED = _object(
    "keda.sh/v1alpha1",
    "ScaledObject",
    {
        "scaleTargetRef": {"name": "fidelity"},
        "minReplicaCount": 1,
        "maxReplicaCount": 4,
        "triggers": [{"type": "cpu", "metricType": "Utilization", "metadata": {"value": "80"}}],
    },
)
ROWS.good("scaled-object", _SCALED)
ROWS.changed("scaled-object-without-triggers", _SCALED, removed("spec", "triggers"))
ROWS.changed(
    "scaled-object-number-in-metadata",
    _SCALED,
    (("spec", "triggers", 0, "metadata"), {"value": 80}),
)

_MONITOR = _object(
    "monitoring.coreos.com/v1",
    "ServiceMonitor",
    {
        "selector": {"matchLabels": {"app": "fidelity"}},
        "endpoints": [{"port": "metrics", "interval": "15s"}],
    },
)
ROWS.good("service-monitor", _MONITOR)
ROWS.changed("service-monitor-interval", _MONITOR, (("spec", "endpoints", 0, "interval"), "often"))
ROWS.changed("service-monitor-without-selector", _MONITOR, removed("spec", "selector"))
