"""The autoscaler of a revision, where the portal writes it: an HPA or KEDA's ScaledObject.

Missing data never scales down: without a metric the HPA keeps the current number.
"""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain import http_route
from deployments.manifests.domain.keda import job_queues, office_hours
from deployments.manifests.domain.metadata import (
    Manifest,
    ManifestContext,
    ServedRevision,
    metadata,
)
from deployments.spec.domain import serving_spec
from deployments.spec.domain.kubernetes_names import workload_name
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.telemetry.domain import metric_names as language
from fleet.telemetry.domain.metric_names import MetricNames

_POLL_SECONDS = 15
_WINDOW: Final = "2m"
_QUEUE: Final = "nv_inference_pending_request_count"
_LATENCY: Final = "nv_inference_request_duration_us"
_GATEWAY_LATENCY: Final = "istio_request_duration_milliseconds_bucket"
_GPU_LOAD: Final = "DCGM_FI_DEV_GPU_UTIL"
_GPU_MEMORY_USED: Final = "DCGM_FI_DEV_FB_USED"
_GPU_MEMORY_FREE: Final = "DCGM_FI_DEV_FB_FREE"
# Metrics that the pods of the model report themselves.
OWN_METRICS: Final = ("first-token", "kv-cache", "latency", "queue")
_SERVERS: Final = {
    serving_spec.KSERVE_SGLANG: language.SGLANG,
    serving_spec.KSERVE_TENSORRT_LLM: language.TENSORRT_LLM,
}
# One pod a minute down, so that a short lull does not cost a cold start.
_ONE_POD_A_MINUTE = [{"type": "Pods", "value": 1, "periodSeconds": 60}]


def metric_names(spec: ServingSpec) -> dict[str, str]:
    """Return the series that the autoscaler reads from Prometheus, by what they are of."""
    scaling = spec.scaling
    if scaling.kind not in (serving_spec.KEDA, serving_spec.HPA):
        return {}
    series = {
        "queue": _queue_of(spec),
        "latency": _LATENCY if spec.llm is None else f"{_server_of(spec).whole_request}_count",
        "gateway-latency": _GATEWAY_LATENCY,
        "gpu": _GPU_LOAD,
        "gpu-memory": _GPU_MEMORY_USED,
        "kv-cache": _server_of(spec).cache_usage[0],
        "first-token": _first_token_of(spec),
    }
    watched = {
        scaling.metric,
        "latency" if scaling.max_latency_ms else "",
        "gpu-memory" if scaling.max_gpu_memory_percent else "",
    }
    return {name: series[name] for name in series if name in watched}


def _server_of(spec: ServingSpec) -> MetricNames:
    """Return the server of a language model."""
    return _SERVERS.get(spec.engine, language.VLLM)


def _queue_of(spec: ServingSpec) -> str:
    return _QUEUE if spec.llm is None else _server_of(spec).waiting


def _first_token_of(spec: ServingSpec) -> str:
    return f"{_server_of(spec).first_token[0]}_bucket"


def _rate(spec: ServingSpec, series: str, where: str) -> str:
    """Return the query for a counter's rate. For TensorRT-LLM it covers both names that releases of the server
    use.
    """
    rate = f"rate({series}{where}[{_WINDOW}])"
    if spec.engine != serving_spec.KSERVE_TENSORRT_LLM:
        return rate
    return f"{rate} or rate({language.LATER_TENSORRT_LLM}{series}{where}[{_WINDOW}])"


def autoscaler(context: ManifestContext, served: ServedRevision) -> list[Manifest]:
    """Return the portal's own autoscaler. Empty where the number is fixed, or KServe or Knative scales."""
    kind = served.spec.scaling.kind
    if kind == serving_spec.HPA and is_own_hpa(served.spec):
        return [_horizontal_pod_autoscaler(context, served)]
    if kind != serving_spec.KEDA:
        return []
    return [_scaled_object(context, served), *job_queues.authentications(context, served)]


def is_own_hpa(spec: ServingSpec) -> bool:
    """Return whether the portal writes the HPA. KServe writes that of its engines, for CPU and memory only."""
    return spec.engine in serving_spec.PLAIN_ENGINES or spec.scaling.metric == "queue"


def target_name(context: ManifestContext, served: ServedRevision) -> str:
    """Return the Deployment that is scaled."""
    workload = workload_name(context.deployment, served.number)
    return workload if served.spec.engine in serving_spec.PLAIN_ENGINES else f"{workload}-predictor"


def _behavior(served: ServedRevision) -> dict[str, Any]:
    seconds = min(served.spec.scaling.cooldown_seconds, 3600)
    return {
        "scaleDown": {"stabilizationWindowSeconds": seconds, "policies": list(_ONE_POD_A_MINUTE)}
    }


def _horizontal_pod_autoscaler(context: ManifestContext, served: ServedRevision) -> Manifest:
    spec = served.spec
    name = workload_name(context.deployment, served.number)
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(context, name, served),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": target_name(context, served),
            },
            "minReplicas": spec.min_replicas,
            "maxReplicas": spec.max_replicas,
            "metrics": [_hpa_metric(context, served)],
            "behavior": _behavior(served),
        },
    }


def _hpa_metric(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    """Return the metric of the HPA. The queue is an external metric: an adapter serves the sum of the server's
    series of that Service, which the HPA divides by the number of replicas.
    """
    scaling = served.spec.scaling
    if scaling.metric != "queue":
        target = {"type": "Utilization", "averageUtilization": scaling.target}
        return {"type": "Resource", "resource": {"name": scaling.metric, "target": target}}
    metric = {
        "name": metric_names(served.spec)["queue"],
        "selector": {"matchLabels": {"service": _service(context, served)}},
    }
    average = {"type": "AverageValue", "averageValue": str(scaling.target)}
    return {"type": "External", "external": {"metric": metric, "target": average}}


def _scaled_object(context: ManifestContext, served: ServedRevision) -> Manifest:
    spec, scaling = served.spec, served.spec.scaling
    return {
        "apiVersion": job_queues.KEDA,
        "kind": "ScaledObject",
        "metadata": metadata(context, workload_name(context.deployment, served.number), served),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": target_name(context, served),
            },
            "pollingInterval": _POLL_SECONDS,
            "cooldownPeriod": scaling.cooldown_seconds,
            "minReplicaCount": spec.floor_replicas,
            "maxReplicaCount": spec.max_replicas,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behavior(served)}},
            "triggers": _triggers(context, served),
        },
    }


def _triggers(context: ManifestContext, served: ServedRevision) -> list[dict[str, Any]]:
    """Return the triggers. KEDA scales by the one that demands most replicas, so each further one is a limit."""
    scaling, triggers = served.spec.scaling, []
    if scaling.metric:
        query = _query(context, served, scaling.metric)
        triggers.append(_prometheus(context, scaling.metric, query, scaling.target))
    if scaling.max_latency_ms:
        query = _query(context, served, "latency")
        triggers.append(_prometheus(context, "latency-limit", query, scaling.max_latency_ms))
    if scaling.max_gpu_memory_percent:
        query = _gpu_memory(context, served)
        limit = scaling.max_gpu_memory_percent
        triggers.append(_prometheus(context, "gpu-memory-limit", query, limit))
    triggers += job_queues.triggers(context, served)
    if scaling.office_hours is not None:
        triggers.append(office_hours.trigger(scaling.office_hours))
    return triggers


def _prometheus(context: ManifestContext, name: str, query: str, threshold: int) -> dict[str, Any]:
    """Return a trigger by a query. A queue length is divided by the number of replicas; other values are
    compared as they are.
    """
    return {
        "type": "prometheus",
        "name": name,
        "metricType": "AverageValue" if name == "queue" else "Value",
        "metadata": {
            "serverAddress": context.prometheus_url,
            "query": query,
            "threshold": str(threshold),
            "activationThreshold": "0",
        },
    }


def _query(context: ManifestContext, served: ServedRevision, metric: str) -> str:
    if metric == "gateway-latency":
        return _gateway_latency(context, served)
    if metric == "gpu":
        return _or_zero(f"avg({_of_gpus(context, served, _GPU_LOAD)})")
    where = f'{{namespace="{context.namespace}",pod=~"{_pods(context, served)}"}}'
    if metric == "kv-cache":
        # Of a pod's copies the fullest one, which is the first to preempt requests.
        named = " or ".join(f"{name}{where}" for name in _server_of(served.spec).cache_usage)
        return _or_zero(f"100 * avg(max by (pod) ({named}))")
    if metric == "first-token":
        rate = _rate(served.spec, _first_token_of(served.spec), where)
        return _or_zero(f"1000 * histogram_quantile(0.95, sum by (le) ({rate}))")
    if metric == "queue":
        return f"sum({_queue_of(served.spec)}{where})"
    latency = _server_of(served.spec).whole_request
    total, count, per_ms = (
        (_LATENCY, "nv_inference_request_success", "/ 1000")
        if served.spec.llm is None
        else (f"{latency}_sum", f"{latency}_count", "* 1000")
    )
    spent, answers = (_rate(served.spec, series, where) for series in (total, count))
    return _or_zero(f"sum({spent}) / sum({answers}) {per_ms}")


def _gpu_memory(context: ManifestContext, served: ServedRevision) -> str:
    """Return the percentage of the fullest GPU."""
    used = _of_gpus(context, served, _GPU_MEMORY_USED)
    free = _of_gpus(context, served, _GPU_MEMORY_FREE)
    return _or_zero(f"100 * max({used} / ({used} + {free}))")


def _of_gpus(context: ManifestContext, served: ServedRevision, metric: str) -> str:
    """Return a metric of dcgm-exporter. Prometheus renames its labels, unless the exporter's ServiceMonitor
    says honorLabels.
    """
    pods = _pods(context, served)
    return (
        f'({metric}{{exported_namespace="{context.namespace}",exported_pod=~"{pods}"}}'
        f' or {metric}{{namespace="{context.namespace}",pod=~"{pods}"}})'
    )


def _pods(context: ManifestContext, served: ServedRevision) -> str:
    return f"{workload_name(context.deployment, served.number)}-.+"


def _gateway_latency(context: ManifestContext, served: ServedRevision) -> str:
    """Return the 95th percentile measured by the mesh's gateway, in milliseconds."""
    where = (
        f'{{reporter="source",destination_service_namespace="{context.namespace}",'
        f'destination_service_name="{_service(context, served)}"}}'
    )
    rate = f"rate({_GATEWAY_LATENCY}{where}[{_WINDOW}])"
    return _or_zero(f"histogram_quantile(0.95, sum by (le) ({rate}))")


def _service(context: ManifestContext, served: ServedRevision) -> str:
    return http_route.service_name(context.deployment, served.number, served.spec)


def _or_zero(query: str) -> str:
    """Make the query yield 0 without traffic: the quotient is NaN then, which KEDA would take for a failure."""
    return f"(({query}) > 0) or vector(0)"
