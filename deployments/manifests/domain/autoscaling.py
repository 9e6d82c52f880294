"""The autoscaler of a revision, where the portal writes it: an HPA or KEDA's ScaledObject.

Missing data never scales down: without a metric the HPA keeps the current number.
"""

from __future__ import annotations

import re
from typing import Any, Final

from deployments.manifests.domain import http_route
from deployments.manifests.domain.metadata import (
    Manifest,
    ManifestContext,
    ServedRevision,
    metadata,
)
from deployments.spec.domain import serving_spec
from deployments.spec.domain.kubernetes_names import workload_name
from deployments.spec.domain.scaling import DEFAULT_TARGETS
from deployments.spec.domain.serving_spec import OfficeHours, ServingSpec

_KEDA = "keda.sh/v1alpha1"
_POLL_SECONDS = 15
_WINDOW: Final = "2m"
_QUEUE: Final = "nv_inference_pending_request_count"
_LATENCY: Final = "nv_inference_request_duration_us"
_LLM_QUEUE: Final = "vllm:num_requests_waiting"
_LLM_LATENCY: Final = "vllm:e2e_request_latency_seconds"
_GATEWAY_LATENCY: Final = "istio_request_duration_milliseconds_bucket"
# Metrics that only running pods report.
POD_METRICS: Final = ("queue", "latency")
_SQS_REGION = re.compile(r"https://sqs\.([a-z0-9-]+)\.")
# One pod a minute down, so that a short lull does not cost a cold start.
_ONE_POD_A_MINUTE = [{"type": "Pods", "value": 1, "periodSeconds": 60}]


def metric_name(spec: ServingSpec) -> str:
    """The metric of KEDA's Prometheus query; empty where it has none."""
    is_llm = spec.llm is not None
    return {
        "queue": _LLM_QUEUE if is_llm else _QUEUE,
        "latency": f"{_LLM_LATENCY}_count" if is_llm else _LATENCY,
        "gateway-latency": _GATEWAY_LATENCY,
    }.get(spec.scaling.metric, "")


def autoscaler(context: ManifestContext, served: ServedRevision) -> list[Manifest]:
    """Empty where the number is fixed, or KServe or Knative scales."""
    kind = served.spec.scaling.kind
    if kind == serving_spec.HPA and served.spec.engine in serving_spec.PLAIN_ENGINES:
        return [_horizontal_pod_autoscaler(context, served)]
    if kind != serving_spec.KEDA:
        return []
    manifests = [_scaled_object(context, served)]
    if served.spec.scaling.sqs_queue_url:
        manifests.append(_trigger_authentication(context, served))
    return manifests


def target_name(context: ManifestContext, served: ServedRevision) -> str:
    """The Deployment that is scaled."""
    workload = workload_name(context.deployment, served.number)
    return workload if served.spec.engine in serving_spec.PLAIN_ENGINES else f"{workload}-predictor"


def _behavior(served: ServedRevision) -> dict[str, Any]:
    seconds = min(served.spec.scaling.cooldown_seconds, 3600)
    return {
        "scaleDown": {"stabilizationWindowSeconds": seconds, "policies": list(_ONE_POD_A_MINUTE)}
    }


def _horizontal_pod_autoscaler(context: ManifestContext, served: ServedRevision) -> Manifest:
    spec, scaling = served.spec, served.spec.scaling
    name = workload_name(context.deployment, served.number)
    target = {"type": "Utilization", "averageUtilization": scaling.target}
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
            "metrics": [
                {"type": "Resource", "resource": {"name": scaling.metric, "target": target}}
            ],
            "behavior": _behavior(served),
        },
    }


def _scaled_object(context: ManifestContext, served: ServedRevision) -> Manifest:
    spec, scaling = served.spec, served.spec.scaling
    return {
        "apiVersion": _KEDA,
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
    """KEDA scales by the trigger that demands most replicas."""
    scaling, triggers = served.spec.scaling, []
    if scaling.metric in ("queue", "latency", "gateway-latency"):
        triggers.append(_prometheus(context, served))
    if scaling.sqs_queue_url:
        triggers.append(_sqs_queue(context, served))
    if scaling.office_hours is not None:
        triggers.append(_cron(scaling.office_hours))
    return triggers


def _prometheus(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    """A queue length is divided by the number of replicas; a latency is compared as it is."""
    scaling = served.spec.scaling
    return {
        "type": "prometheus",
        "name": scaling.metric,
        "metricType": "AverageValue" if scaling.metric == "queue" else "Value",
        "metadata": {
            "serverAddress": context.prometheus_url,
            "query": _query(context, served),
            "threshold": str(scaling.target),
            "activationThreshold": "0",
        },
    }


def _query(context: ManifestContext, served: ServedRevision) -> str:
    if served.spec.scaling.metric == "gateway-latency":
        return _gateway_latency(context, served)
    pods = f"{workload_name(context.deployment, served.number)}-.+"
    where = f'{{namespace="{context.namespace}",pod=~"{pods}"}}'
    is_llm = served.spec.llm is not None
    if served.spec.scaling.metric == "queue":
        return f"sum({metric_name(served.spec)}{where})"
    total, count, per_ms = (
        (f"{_LLM_LATENCY}_sum", f"{_LLM_LATENCY}_count", "* 1000")
        if is_llm
        else (_LATENCY, "nv_inference_request_success", "/ 1000")
    )
    mean = f"sum(rate({total}{where}[{_WINDOW}])) / sum(rate({count}{where}[{_WINDOW}]))"
    return _or_zero(f"{mean} {per_ms}")


def _gateway_latency(context: ManifestContext, served: ServedRevision) -> str:
    """The 95th percentile measured by the mesh's gateway, in milliseconds."""
    where = (
        f'{{reporter="source",destination_service_namespace="{context.namespace}",'
        f'destination_service_name="{_service(context, served)}"}}'
    )
    rate = f"rate({_GATEWAY_LATENCY}{where}[{_WINDOW}])"
    return _or_zero(f"histogram_quantile(0.95, sum by (le) ({rate}))")


def _service(context: ManifestContext, served: ServedRevision) -> str:
    return http_route.service_name(context.deployment, served.number, served.spec)


def _or_zero(query: str) -> str:
    """Without traffic the quotient is NaN, which KEDA would take for a failure."""
    return f"(({query}) > 0) or vector(0)"


def _sqs_queue(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    scaling = served.spec.scaling
    region = _SQS_REGION.match(scaling.sqs_queue_url)
    length = (
        scaling.target if scaling.metric == "sqs" else DEFAULT_TARGETS[serving_spec.KEDA, "sqs"]
    )
    return {
        "type": "aws-sqs-queue",
        "name": "jobs",
        "authenticationRef": {"name": workload_name(context.deployment, served.number)},
        "metadata": {
            "queueURL": scaling.sqs_queue_url,
            "awsRegion": region[1] if region else "",
            "queueLength": str(length),
            "activationQueueLength": "0",
            "scaleOnInFlight": "true",
        },
    }


def _cron(hours: OfficeHours) -> dict[str, Any]:
    return {
        "type": "cron",
        "name": "office-hours",
        "metadata": {
            "timezone": hours.timezone,
            "start": _cron_time(hours.start, hours.days),
            "end": _cron_time(hours.end, hours.days),
            "desiredReplicas": str(hours.replicas),
        },
    }


def _cron_time(clock: str, days: str) -> str:
    hour, _, minute = clock.partition(":")
    return f"{int(minute)} {int(hour)} * * {days}"


def _trigger_authentication(context: ManifestContext, served: ServedRevision) -> Manifest:
    """KEDA reads the queue length with its own role, which needs sqs:GetQueueAttributes."""
    return {
        "apiVersion": _KEDA,
        "kind": "TriggerAuthentication",
        "metadata": metadata(context, workload_name(context.deployment, served.number), served),
        "spec": {"podIdentity": {"provider": "aws"}},
    }
